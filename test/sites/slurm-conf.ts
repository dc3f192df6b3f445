import type { SlurmOptions } from './slurm.ts';

export interface SlurmPlace {
  readonly dir: string;
  /** The port of slurmctld; those of the nodes follow. */
  readonly port: number;
  readonly nodes: number;
  readonly host: string;
  readonly socket: string;
  readonly user: string;
}

/** A slurm.conf that needs no systemd, cgroup or /etc, with a quick scheduler and short time-outs. */
export function slurmConf(at: SlurmPlace, options: SlurmOptions): string {
  const { dir, port, nodes, host } = at;
  const cpus = options.cpus ?? 4;
  const more = options.scheduler === undefined ? '' : `,${options.scheduler}`;
  return `ClusterName=gryphus
SlurmctldHost=${host}(127.0.0.1)
SlurmctldPort=${port}
SlurmUser=${at.user}
SlurmdUser=${at.user}
AuthType=auth/munge
AuthInfo=socket=${at.socket}
CredType=cred/munge
StateSaveLocation=${dir}/state
SlurmdSpoolDir=${dir}/spool/%n
# Where PMIx puts its sockets: nodes of one host must not share them.
TmpFS=${dir}/spool/%n
SlurmctldPidFile=${dir}/run/slurmctld.pid
SlurmdPidFile=${dir}/run/slurmd-%n.pid
SlurmctldLogFile=${dir}/log/slurmctld.log
SlurmdLogFile=${dir}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1,max_rpc_cnt=0${more}
ReturnToService=2
InactiveLimit=0
KillWait=2
MinJobAge=${options.minJobAge ?? 300}
SlurmctldTimeout=10
SlurmdTimeout=15
UnkillableStepTimeout=30
CompleteWait=0
MaxJobCount=20000
MaxArraySize=10001
EnforcePartLimits=ALL
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
NodeName=n[1-${nodes}] NodeHostname=${host} NodeAddr=127.0.0.1 Port=[${port + 1}-${port + nodes}] CPUs=${cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket=${cpus} ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=00:10:00 State=UP
PartitionName=short Nodes=n1 MaxTime=00:02:00 DefaultTime=00:01:00 State=UP
${(options.config ?? []).map((line) => `${line}\n`).join('')}`;
}
