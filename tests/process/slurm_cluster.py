"""A Slurm of one node, which lives as long as the test that uses it.

Anyone who reaches this Slurm may run programs as root: it checks nobody. So it runs in a network of its own, where only
its own processes are, and among processes of its own: the kernel ends all of them with the test. Its files are in a
temporary directory.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import time

PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol", "sinfo", "squeue")
STARTS = 60  # seconds until the node must be ready

# cred_expire: a job that was put back into the queue waits as long before it starts again.
# config_overrides: the node has as many cores as this file says.
SETTINGS = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
TmpFS={root}/tmp
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
MpiDefault=pmix
SchedulerParameters=sched_interval=1
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Why Slurm cannot run here; "" if it can."""
    if os.geteuid() != 0:
        return "only root can start Slurm's daemons"
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"there is no {program} (Debian: slurm-wlm)"
    return ""


class Cluster:
    """The daemons of one node."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.daemons = []
        for name in ("state", "spool", "tmp"):
            (self.root / name).mkdir(parents=True)
        host = socket.gethostname().split(".")[0]
        (self.root / "slurm.conf").write_text(SETTINGS.format(host=host, root=self.root), encoding="utf-8")
        # slurmd always has a cgroup plugin, even if no other setting uses cgroups. Version 2 needs systemd.
        (self.root / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")
        os.environ["SLURM_CONF"] = str(self.root / "slurm.conf")

    def start(self):
        """Returns why the node is not ready; "" if it is."""
        # Slurm asks for its own address in a way that counts no loopback interface.
        for words in ("link add test0 type veth peer name test1", "address add 10.78.0.1/24 dev test0", "link set test0 up"):
            subprocess.run(["ip", *words.split()], check=True)
        for name in ("slurmctld", "slurmd"):
            with (self.root / f"{name}.out").open("w", encoding="utf-8") as output:
                self.daemons.append(subprocess.Popen([name, "-D"], stdout=output, stderr=output))
        until = time.monotonic() + STARTS
        while time.monotonic() < until and all(daemon.poll() is None for daemon in self.daemons):
            states = subprocess.run(["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True, check=False)
            if states.stdout.strip() == "idle":
                return ""
            time.sleep(0.2)
        logs = [(self.root / f"{name}.log") for name in ("slurmctld", "slurmd")]
        return "Slurm does not start: " + "".join(log.read_text()[-500:] for log in logs if log.exists())

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=STARTS)
            except subprocess.TimeoutExpired:  # slurmd may hang at its end; the jobs have ended
                daemon.kill()
                daemon.wait()
