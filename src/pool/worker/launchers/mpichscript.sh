#!/bin/sh
# mpichscript PROGRAM ARGUMENTS...: runs a program of MPICH on all nodes of this job. MPIEXEC names its mpiexec, and
# MPIEXEC_OPTIONS more options of it.
[ $# -gt 0 ] || { echo 'usage: mpichscript PROGRAM [ARGUMENTS]' >&2; exit 64; }
@COMMON@
# What is each node's own must not come from node 0.
names=$(awk 'BEGIN {
  own = "^(_CONDOR_(PROCNO|SCRATCH_DIR|JOB_IWD|JOB_AD|MACHINE_AD|CHIRP_CONFIG)|GRYPHUS_(KEY|GANG|RSH|LAUNCHERS)|PWD|OLDPWD|_)$"
  for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ && name !~ own) list = list (list == "" ? "" : ",") name
  print list
}')
mpiexec=${MPIEXEC:-$(command -v mpiexec.hydra || command -v mpiexec)}
[ -n "$mpiexec" ] || { echo 'mpichscript: there is no mpiexec on this machine: set MPIEXEC' >&2; exit 127; }
# shellcheck disable=SC2086
exec "$mpiexec" -launcher ssh -launcher-exec "$GRYPHUS_RSH" -hosts "$hosts" -n "$all" -genvlist "$names" -wdir / \
  ${MPIEXEC_OPTIONS:-} /bin/sh -c "$IN_PLACE" sh "$@"
