/** HTCondor's commands, and the command here that has their options. */
export const CONDOR: Readonly<Record<string, readonly string[]>> = {
  condor_submit: ['submit'],
  condor_q: ['q'],
  condor_rm: ['rm'],
  condor_hold: ['hold'],
  condor_release: ['release'],
  condor_wait: ['wait'],
  condor_history: ['history'],
  condor_status: ['status', '--pool'],
  condor_submit_dag: ['dag', 'submit', '--as-condor'],
  condor_tail: ['tail'],
  condor_userprio: ['userprio'],
  condor_qedit: ['edit'],
  condor_vacate_job: ['vacate'],
  condor_suspend: ['suspend'],
  condor_continue: ['continue'],
  condor_ssh_to_job: ['ssh'],
};

/** HTCondor's commands that no command here is like. */
export const CONDOR_OWN = ['condor_prio', 'condor_version', 'condor_config_val'] as const;

export const SLURM = ['sbatch', 'squeue', 'scancel', 'sacct', 'scontrol', 'sacctmgr', 'sinfo', 'srun'] as const;

/** Commands that PBS and Grid Engine both have, by whose manner they follow. */
export const Q_COMMANDS = {
  pbs: ['qsub', 'qstat', 'qdel', 'qhold', 'qrls'],
  sge: ['qsub', 'qstat', 'qdel', 'qhold', 'qrls', 'qacct'],
} as const;
