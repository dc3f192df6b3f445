#!/bin/sh
# Gryphus: what Slurm runs. It sends TERM and KILL to all processes of a job, other signals only to this one.
# $4: the submission, or `array`; $3 is then the group.
if [ "$4" = array ]; then
  set -- "$1" "$2" "$3" "$SLURM_ARRAY_TASK_ID" "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
else
  set -- "$1" "$2" "$3" "$4" "${SLURM_JOB_ID:--}"
fi
# Slurm had put it back into its queue.
unset GRYPHUS_RESTARTED
[ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || export GRYPHUS_RESTARTED="$SLURM_RESTART_COUNT"
# Since 22.05, srun in a job does not take the cores of a task from sbatch.
[ -z "${SLURM_CPUS_PER_TASK-}" ] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
exec /bin/sh "$1" "$2" "$3" "$4" 'HUP INT QUIT USR1 USR2 XCPU' "$5"
