"""Batch AI's published recipes, shortened but with all their quirks, and documents of systems that used them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
SCHEMAS = "https://raw.githubusercontent.com/Azure/BatchAI/master/schemas"
JOB, OLD_JOB = {"$schema": f"{SCHEMAS}/2018-05-01/job.json"}, {"$schema": f"{SCHEMAS}/2017-09-01-preview/job.json"}
ROOT, JOB_ROOT = "$AZ_BATCHAI_MOUNT_ROOT", "$AZ_BATCHAI_JOB_MOUNT_ROOT"


def image(name: str) -> Json:
    return {"containerSettings": {"imageSourceRegistry": {"image": name}}}


def shares(*names: str) -> list[Json]:
    host = "https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net"
    return [{"azureFileUrl": f"{host}/{name}", "relativeMountPath": name} for name in names]


def external(folder: str, name: str) -> Json:
    return {"id": name, "path": f"{ROOT}/external/{folder}"}


MODEL = [{"id": "MODEL", "pathPrefix": f"{ROOT}/external", "pathSuffix": "Models"}]
LOGS = {"stdOutErrPathPrefix": f"{ROOT}/external"}
JOB_LOGS = {"stdOutErrPathPrefix": f"{JOB_ROOT}/logs"}
HOSTS = "--ps_hosts=$AZ_BATCHAI_PS_HOSTS --worker_hosts=$AZ_BATCHAI_WORKER_HOSTS --task_index=$AZ_BATCHAI_TASK_INDEX"
PLACES = "--data_dir=$AZ_BATCHAI_INPUT_DATASET --output_dir=$AZ_BATCHAI_OUTPUT_MODEL"
MPIRUN = "mpirun -mca btl_tcp_if_exclude docker0,lo --allow-run-as-root --hostfile $AZ_BATCHAI_MPI_HOST_FILE"
INSTALL_MPI = "apt update; apt install mpi-default-dev mpi-default-bin -y; pip install horovod"


def gloo(epochs: int = 10, **more: Any) -> Json:
    """PyTorch-GPU-Distributed-Gloo, as its document prints it."""
    line = "--world-size 2 --dist-backend gloo --dist-url $AZ_BATCHAI_PYTORCH_INIT_METHOD --rank $AZ_BATCHAI_TASK_INDEX"
    return {
        **JOB,
        "properties": {
            "nodeCount": 2,
            "pyTorchSettings": {
                "pythonScriptFilePath": f"{JOB_ROOT}/scripts/pytorch/mnist_trainer.py",
                "commandLineArgs": f"--epochs {epochs} {line}",
                "communicationBackend": "gloo",
            },
            **JOB_LOGS,
            "mountVolumes": {"azureFileShares": shares("logs", "scripts")},
            "jobPreparation": {"commandLine": INSTALL_MPI},
            **image("pytorch/pytorch:0.4_cuda9_cudnn7"),
            **more,
        },
    }


def practitioner() -> Json:
    """The job.json of the deep-learning job service."""
    return {
        **JOB,
        "properties": {
            "nodeCount": 1,
            "pyTorchSettings": {
                "pythonScriptFilePath": f"{ROOT}/logs/scripts/pytorch/PyTorchTransferLearning.py",
                "commandLineArgs": f"--input_dir {ROOT}/datalake/hymenoptera_data --epochs 25 "
                f"--output_dir {ROOT}/datalake/models",
            },
            "stdOutErrPathPrefix": f"{ROOT}/logs",
            **image("batchaitraining/pytorch:0.4.0-cp36-cuda9-cudnn7"),
        },
    }


def project(**more: Any) -> Json:
    return {
        "clusterName": "ENTER_THE_CLUSTER_NAME",
        "persistCluster": "False",
        "resourceGroup": "ENTER_RESOURCE_GROUP_NAME",
        "storageAccount": "ENTER_STORAGE_ACCOUNT",
        "blobContainerName": "ENTER_NAME_THAT_CONTAINS_THE_DATA",
        "experimentName": "ENTER_EXPERIMENT_NAME",
        "workspaceName": "dev",
        "sourceScript": "PyTorchTransferLearning.py",
        "sourceScriptFileShareDirectory": "scripts/pytorch",
        "monitorFileName": "stdout-0.txt",
        "logFileShareName": "logs",
        "maxNodes": 1,
        **more,
    }


def retinanet() -> Json:
    """The Horovod job on COCO: processCount where no schema has it, no container, mounts of the cluster."""
    return {
        **OLD_JOB,
        "properties": {
            "nodeCount": 2,
            "customToolkitSettings": {
                "processCount": 8,
                "commandLine": f"{MPIRUN} python {ROOT}/afs_batchai/scripts/train.py --steps 500 --tensorboard-dir "
                "$AZ_BATCHAI_OUTPUT_OUTPUTFILES/tensorboard --snapshot-path $AZ_BATCHAI_OUTPUT_OUTPUTFILES "
                f"--no-evaluation coco {ROOT}/coco",
            },
            "stdOutErrPathPrefix": f"{ROOT}/afs_batchai",
            "outputDirectories": [{"id": "OUTPUTFILES", "pathPrefix": f"{ROOT}/afs_batchai", "pathSuffix": "output"}],
        },
    }


def retinanet_cluster() -> Json:
    key = {"accountKey": "[your storage account key]"}
    account = "[your storage account name]"
    return {
        "location": "eastus",
        "properties": {
            "scaleSettings": {"manual": {"nodeDeallocationOption": "requeue", "targetNodeCount": 2}},
            "userAccountSettings": {"adminUserPassword": "xvpassword", "adminUserName": "xvuser"},
            "vmPriority": "dedicated",
            "vmSize": "STANDARD_NC24",
            "nodeSetup": {
                "setupTask": {
                    "commandLine": "sudo /anaconda/envs/py35/bin/pip install horovod pycocotools",
                    "stdOutErrPathPrefix": f"{ROOT}/afs",
                },
                "mountVolumes": {
                    "azureFileShares": [
                        {
                            "accountName": account,
                            "azureFileUrl": f"https://{account}.file.core.windows.net/batchaicoco",
                            "credentials": key,
                            "directoryMode": "0777",
                            "fileMode": "0777",
                            "relativeMountPath": "afs_batchai",
                        }
                    ],
                    "azureBlobFileSystems": [
                        {
                            "accountName": account,
                            "containerName": "coco",
                            "credentials": key,
                            "relativeMountPath": "coco",
                            "mountOptions": "",
                        }
                    ],
                },
            },
        },
    }


def _old(settings: Json, nodes: int, tag: str, **more: Any) -> Json:
    return {**OLD_JOB, "properties": {"nodeCount": nodes, **settings, **LOGS, **(image(tag) if tag else {}), **more}}


def _new(settings: Json, nodes: int, tag: str, **more: Any) -> Json:
    mounts = {"mountVolumes": {"azureFileShares": shares("logs", "scripts")}}
    return {**JOB, "properties": {"nodeCount": nodes, **settings, **JOB_LOGS, **mounts, **image(tag), **more}}


_CONTAINER = {"accountName": "<AZURE_BATCHAI_STORAGE_ACCOUNT>", "containerName": "data", "relativeMountPath": "data"}
_DATA = {"azureBlobFileSystems": [_CONTAINER]}
_CNTK = "microsoft/cntk:2.1-gpu-python3.5-cuda8.0-cudnn6.0"

RECIPES: dict[str, Json] = {
    "PyTorch-GPU-Distributed-Gloo": gloo(),
    "TensorFlow-GPU": _old(
        {"tensorFlowSettings": {"pythonScriptFilePath": "$AZ_BATCHAI_INPUT_SCRIPT/convolutional.py"}},
        1,
        "tensorflow/tensorflow:1.1.0-gpu",
        inputDirectories=[external("tensorflow_samples", "SCRIPT")],
    ),
    "TensorFlow-GPU-Distributed": _old(
        {
            "tensorFlowSettings": {
                "parameterServerCount": 1,
                "workerCount": 2,
                "pythonScriptFilePath": "$AZ_BATCHAI_INPUT_SCRIPT/mnist_replica.py",
                "masterCommandLineArgs": f"--job_name=worker --num_gpus=1 {HOSTS} {PLACES}",
                "workerCommandLineArgs": f"--job_name=worker --num_gpus=1 {HOSTS} {PLACES}",
                "parameterServerCommandLineArgs": f"--job_name=ps --num_gpus=0 {HOSTS} {PLACES}",
            }
        },
        2,
        "tensorflow/tensorflow:1.1.0-gpu",
        inputDirectories=[external("mnist_dataset", "DATASET"), external("tensorflow_samples", "SCRIPT")],
        outputDirectories=MODEL,
    ),
    "CNTK-GPU-Python": _old(
        {
            "cntkSettings": {
                "pythonScriptFilePath": "$AZ_BATCHAI_INPUT_SCRIPT/ConvNet_MNIST.py",
                "commandLineArgs": "$AZ_BATCHAI_INPUT_DATASET $AZ_BATCHAI_OUTPUT_MODEL",
            }
        },
        1,
        _CNTK,
        inputDirectories=[external("mnist_database", "DATASET"), external("cntk_samples", "SCRIPT")],
        outputDirectories=MODEL,
    ),
    "CNTK-GPU-Python-Distributed": _old(
        {
            "cntkSettings": {
                "pythonScriptFilePath": "$AZ_BATCHAI_INPUT_SCRIPT/ConvNet_CIFAR10_DataAug_Distributed.py",
                "commandLineArgs": "--datadir $AZ_BATCHAI_JOB_TEMP -outputdir $AZ_BATCHAI_OUTPUT_MODEL -n 5",
                "process_count": 2,
            }
        },
        2,
        _CNTK,
        inputDirectories=[external("cntk_samples", "SCRIPT")],
        outputDirectories=MODEL,
        jobPreparation={"commandLine": "bash $AZ_BATCHAI_INPUT_SCRIPT/CIFA-10_data_prepare.sh"},
    ),
    "CNTK-GPU-Python-Distributed-Infiniband": _new(
        {
            "cntkSettings": {
                "pythonScriptFilePath": f"{JOB_ROOT}/scripts/cntk/TrainResNet_CIFAR10_Distributed.py",
                "commandLineArgs": "--datadir $AZ_BATCHAI_JOB_TEMP -outputdir $AZ_BATCHAI_OUTPUT_MODEL -n resnet110",
                "processCount": 8,
            }
        },
        2,
        "batchaitraining/cntk:2.3-gpu-1bitsgd-py36-cuda8-cudnn6-intelmpi",
        outputDirectories=[{"id": "MODEL", "pathPrefix": f"{JOB_ROOT}/logs"}],
        jobPreparation={"commandLine": f"bash {JOB_ROOT}/scripts/cntk/jobprep_cntk_distributed_ib.sh"},
    ),
    "CNTK-GPU-BrainScript-Distributed": _old(
        {
            "cntkSettings": {
                "configFilePath": "$AZ_BATCHAI_INPUT_CONFIG/DistributedConvNet_MNIST.cntk",
                "commandLineArgs": "rootDir=. dataDir=$AZ_BATCHAI_INPUT_DATASET outputDir=$AZ_BATCHAI_OUTPUT_MODEL "
                "parallelTrain=true",
            }
        },
        2,
        _CNTK,
        inputDirectories=[external("mnist_database", "DATASET"), external("cntk_samples", "CONFIG")],
        outputDirectories=MODEL,
    ),
    "Caffe-GPU": _old(
        {"caffeSettings": {"configFilePath": "$AZ_BATCHAI_INPUT_SAMPLE/lenet_solver.prototxt"}},
        1,
        "bvlc/caffe:gpu",
        inputDirectories=[external("caffe_samples", "SAMPLE")],
        outputDirectories=MODEL,
        jobPreparation={"commandLine": "bash $AZ_BATCHAI_INPUT_SAMPLE/preparation_script.sh"},
    ),
    "Caffe2-GPU-Distributed": _new(
        {
            "caffe2Settings": {
                "pythonScriptFilePath": f"{JOB_ROOT}/scripts/caffe2/resnet50_trainer.py",
                "commandLineArgs": "--num_shards 2 --shard_id $AZ_BATCHAI_TASK_INDEX --run_id 0 --epoch_size 2000 "
                f"--num_epochs 5 --train_data {JOB_ROOT}/data/mnist_data/mnist_train_lmdb --file_store_path "
                "$AZ_BATCHAI_SHARED_JOB_TEMP",
            }
        },
        2,
        "caffe2ai/caffe2",
        mountVolumes={"azureFileShares": shares("logs", "scripts"), **_DATA},
    ),
    "Chainer-GPU-Distributed": _old(
        {
            "chainerSettings": {
                "pythonScriptFilePath": "$AZ_BATCHAI_INPUT_SCRIPT/train_mnist.py",
                "masterCommandLineArgs": "-g -o $AZ_BATCHAI_OUTPUT_MODEL",  # a field of TensorFlow, not of Chainer
            }
        },
        2,
        "batchaitraining/chainermn:openMPI",
        inputDirectories=[external("chainer_samples", "SCRIPT")],
        outputDirectories=MODEL,
    ),
    "Horovod": _old(
        {"customToolkitSettings": {"commandLine": f"{MPIRUN} python $AZ_BATCHAI_INPUT_SCRIPTS/tensorflow_mnist.py"}},
        2,
        "tensorflow/tensorflow:1.1.0-gpu",
        inputDirectories=[external("horovod_samples", "SCRIPTS")],
        outputDirectories=MODEL,
        jobPreparation={"commandLine": INSTALL_MPI},
    ),
    "Horovod-PyTorch": _new(
        {"horovodSettings": {"pythonScriptFilePath": f"{JOB_ROOT}/scripts/horovod/pytorch_mnist.py"}},
        2,
        "batchaitraining/pytorch:0.4.0-cp36-cuda9-cudnn7",
        outputDirectories=MODEL,  # below an undeclared mount
        jobPreparation={"commandLine": INSTALL_MPI},
    ),
    "Horovod-Infiniband-Benchmark": _old(
        {
            "customToolkitSettings": {
                "commandLine": "source /opt/intel/compilers_and_libraries_2017.4.196/linux/mpi/intel64/bin/mpivars.sh; "
                "cd $AZ_BATCHAI_JOB_TEMP/benchmarks/; mpirun -n 8 -ppn 4 -hosts $AZ_BATCH_HOST_LIST -env "
                "I_MPI_FABRICS=dapl -env I_MPI_DAPL_PROVIDER=ofa-v2-ib0 -env I_MPI_DYNAMIC_CONNECTION=0 python "
                "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py --model resnet101 --batch_size 64 "
                "--variable_update horovod"
            }
        },
        2,
        "tensorflow/tensorflow:1.4.0-gpu",
        inputDirectories=[external("horovod_samples", "SCRIPTS")],
        jobPreparation={"commandLine": "bash $AZ_BATCHAI_INPUT_SCRIPTS/jobprep_benchmark.sh"},
    ),
    "Keras-DSVM": _old(
        {"customToolkitSettings": {"commandLine": "KERAS_BACKEND=cntk python $AZ_BATCHAI_INPUT_SCRIPT/mnist_cnn.py"}},
        1,
        "",
        inputDirectories=[external("keras_samples", "SCRIPT")],
    ),
    "Keras-GPU": _old(
        {"cntkSettings": {"pythonScriptFilePath": "$AZ_BATCHAI_INPUT_SCRIPT/mnist_cnn.py"}},
        1,
        "microsoft/cntk:2.5.1-gpu-python2.7-cuda9.0-cudnn7.0",
        inputDirectories=[external("keras_samples", "SCRIPT")],
    ),
    "Distributed-Batch-Scoring": _old(
        {
            "customToolkitSettings": {
                "commandLine": f"{MPIRUN} python -u $AZ_BATCHAI_INPUT_SCRIPT/batch_image_label.py --dataset_path "
                "$AZ_BATCHAI_INPUT_IMAGES --model_path $AZ_BATCHAI_INPUT_MODEL/inception_v3.ckpt --output_dir "
                "$AZ_BATCHAI_OUTPUT_LABEL --batch_size 64"
            }
        },
        2,
        "tensorflow/tensorflow:1.7.0-gpu",
        inputDirectories=[external("samples", "SCRIPT"), external("images", "IMAGES"), external("models", "MODEL")],
        outputDirectories=[{"id": "LABEL", "pathPrefix": f"{ROOT}/afs"}],
    ),
    "easy_batchai_pytorch": practitioner(),
    "batchai_retinanet_horovod_coco": retinanet(),
}
