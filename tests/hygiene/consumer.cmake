# Installs the build into a fresh prefix, builds the custom policy example against it, and trains with it.
cmake_policy(VERSION 3.23)
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "consumer: '${ARGN}' ended with ${code}:\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/hygiene/consumer -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_PREFIX_PATH=${WORK}/prefix -DEXAMPLE=${SOURCE}/examples/custom_policy.cpp "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK}/build -j 2)
run(${MPIEXEC} --oversubscribe --allow-run-as-root --bind-to none -n 2 ${WORK}/build/consumer --policy.type=mlp
  --policy.hidden_dim=32 --policy.device=cpu --policy.push_to_hub=false --dataset.repo_id=lerobot/pusht_mini_state
  --dataset.root=${SOURCE}/tests/data/datasets/pusht_mini_state --steps=20 --log_freq=10 --num_workers=0
  --output_dir=${WORK}/run)
if(NOT output MATCHES "End of training" OR NOT EXISTS ${WORK}/run/checkpoints/last/pretrained_model/model.safetensors)
  message(FATAL_ERROR "consumer: the custom policy left no checkpoint:\n${output}")
endif()

# The installed program starts with an empty environment.
run(env -i PATH=$ENV{PATH} ${MPIEXEC} --oversubscribe --allow-run-as-root -n 2
  ${WORK}/prefix/bin/lerobot-train --help)
if(NOT output MATCHES "--policy.type")
  message(FATAL_ERROR "consumer: the installed lerobot-train printed no help:\n${output}")
endif()
