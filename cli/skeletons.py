"""The files of a new application for `muster app new`: program, batch, and the commands that add both. Pure."""

from __future__ import annotations

from collections.abc import Mapping

PLATFORM = "x86_64-pc-linux-gnu"

_BATCH = """app = "{name}"
qos = "throughput"

[jobs]
count = 10
command_line = "{{i}}"
fpops_est = 1e10
delay_bound_s = 86400
outputs = [{{ name = "out", max_bytes = 100000 }}]
"""
_ADD = """#!/bin/sh
# Adds the application and its version, $1: 100 is 1.00. Run it in this folder, with MUSTER_DATA_DIR set.
set -e
version=${{1:-100}}
muster app list --json | grep -q '"name":"{name}"' || muster app add {name}
{more}muster app version add {name} --platform {platform} --version "$version" {files}
"""
_SCRIPT = """#!/bin/sh
# {name}: $1 is the job's number. Reads its input files and writes its outputs in the folder in which it runs.
set -e
echo $(( $1 * 2 )) > out
touch boinc_finish_called
"""
_GPU = """#!/bin/sh
# {name}: a job on one NVIDIA GPU. The client writes the number of the GPU to init_data.xml.
set -e
device=$(sed -n 's/.*<gpu_device_num>\\(.*\\)<\\/gpu_device_num>.*/\\1/p' init_data.xml)
export CUDA_VISIBLE_DEVICES="$device"
nvidia-smi --id="$device" > out
touch boinc_finish_called
"""
_WORKER = """#!/bin/sh
# {name}: runs under the BOINC wrapper, which calls it again after an interruption. $1 is the job's number.
set -e
step=0
if [ -f checkpoint ]; then step=$(cat checkpoint); fi
while [ "$step" -lt 10 ]; do
    sleep 1  # the work of one step
    step=$((step + 1))
    echo "$step" > checkpoint.new && mv checkpoint.new checkpoint
    echo "0.$step" | sed 's/0.10/1/' > fraction_done
done
echo "$1 done in $step steps" > out
"""
_JOB_XML = """<job_desc>
    <task>
        <application>worker</application>
        <append_cmdline_args/>
        <checkpoint_filename>checkpoint</checkpoint_filename>
        <fraction_done_filename>fraction_done</fraction_done_filename>
    </task>
</job_desc>
"""
_DOCKERFILE = """FROM docker.io/library/alpine:3.20
WORKDIR /app
# The job's folder is mounted at /app when the container runs: no COPY is needed.
CMD ["/bin/sh", "-c", "sh main.sh $ARGS"]
"""
_MAIN = """# {name}: runs in the container, in the job's folder. $1 is the job's number.
set -e
echo $(( $1 * 2 )) > out
"""
_JOB_TOML = """workdir = "/app"
"""

TEMPLATES: Mapping[str, Mapping[str, str]] = {  # file name to content; {name} is the application's
    "script": {"program.sh": _SCRIPT},
    "wrapper": {"worker.sh": _WORKER, "job.xml": _JOB_XML},
    "docker": {"Dockerfile": _DOCKERFILE, "main.sh": _MAIN, "job.toml": _JOB_TOML},
    "gpu": {"program.sh": _GPU},
}
_PLAN_CLASSES: Mapping[str, str] = {  # how it is defined
    "docker": "muster app plan-class set docker --needs docker\n",
    "gpu": "muster app plan-class set cuda --gpu-type NVIDIA --ncpus 0.1\n",
}
_FILES: Mapping[str, str] = {
    "script": "--main program.sh",
    "wrapper": "--main wrapper --file job.xml --link worker=worker.sh",
    "docker": "--main docker_wrapper --file Dockerfile --file main.sh --file job.toml --plan-class docker",
    "gpu": "--main program.sh --plan-class cuda",
}
EXECUTABLE = ".sh"
WRAPPERS: Mapping[str, str] = {"wrapper": "wrapper", "docker": "docker_wrapper"}  # the program that the user provides


def files_of(name: str, template: str) -> dict[str, str]:
    """Return the files of a new application by name.

    >>> sorted(files_of("pi", "wrapper"))
    ['add.sh', 'batch.toml', 'job.xml', 'worker.sh']
    """
    made = {file: text.replace("{name}", name) for file, text in TEMPLATES[template].items()}
    made["batch.toml"] = _BATCH.format(name=name)
    more = _PLAN_CLASSES.get(template, "")
    made["add.sh"] = _ADD.format(name=name, platform=PLATFORM, files=_FILES[template], more=more)
    return made
