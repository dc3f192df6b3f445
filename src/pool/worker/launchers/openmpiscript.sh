#!/bin/sh
# openmpiscript PROGRAM ARGUMENTS...: runs a program of Open MPI on all nodes of this job. MPIRUN names its mpirun, and
# MPIRUN_OPTIONS more options of it.
[ $# -gt 0 ] || { echo 'usage: openmpiscript PROGRAM [ARGUMENTS]' >&2; exit 64; }
@COMMON@
mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
[ -n "$mpirun" ] || { echo 'openmpiscript: there is no mpirun on this machine: set MPIRUN' >&2; exit 127; }
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# A pilot's batch system has allocated other nodes than this job's.
# Each node's daemon has its own directory: those of one machine get in each other's way in /tmp. It stays attached, since
# mpirun waits for ever for a daemon that failed after it had left its session.
# shellcheck disable=SC2086,SC2016
exec "$mpirun" --mca plm_rsh_agent "$GRYPHUS_RSH" --mca plm_rsh_no_tree_spawn 1 --mca plm rsh --mca ras '^slurm,tm,gridengine,lsf,alps' \
  --mca orte_launch_agent 'OMPI_MCA_orte_tmpdir_base=$GRYPHUS_LAUNCHERS orted' --leave-session-attached --host "$hosts" -n "$all" \
  --wdir / --bind-to none ${MPIRUN_OPTIONS:-} /bin/sh -c "$IN_PLACE" sh "$@"
