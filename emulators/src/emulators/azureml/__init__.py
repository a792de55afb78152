"""The Azure Machine Learning control plane on one machine: Azure Resource Manager over HTTPS, and jobs that really
run.

The unmodified `azure.ai.ml.MLClient` works against it. Who does what:

    config, identity          what the part is started with; tokens for DefaultAzureCredential
    models, spec, sources, distribution, cluster_body, plan, environment
                              states, what a body asks for, the scheduler's decisions, a rank's variables: no I/O
    recipe, dockerfile, recipes, environments, installed, launchers, unused
                              what a job's environment is made of, and making it with uv
    registries, registry_files, registry_folder
                              assets that are shared, read from an owner's files
    needs                     what a job needs of this machine, looked at before it is accepted
    store, workspace          what survives a restart, and the use cases that change it
    wire, *_routes, operations, control, server
                              bodies as Microsoft's OpenAPI has them, and the routes that answer with them
    scheduler, attempt, site, run_logs
                              carry decisions out; one attempt runs a job on its nodes, with logs that say how it went
    processes, guard, mpi, ray_cluster
                              process groups of a rank, who ends them if this process is killed, and two launchers
    blobs, places, web, data, logs, copies, registering
                              inputs, outputs and logs in the storage account, and outputs that become assets
    events, blobfront         status changes to Event Grid; TLS in front of the blobs for the SDK's datastore access
"""
