#!/bin/sh
# batchscript SCRIPT ARGUMENTS...: runs a batch script of several nodes as its own system does, once, at the first node; a
# file names the nodes, each as often as it has ranks.
[ $# -gt 0 ] || { echo 'usage: batchscript SCRIPT [ARGUMENTS]' >&2; exit 64; }
@COMMON@
if [ -n "${PBS_JOBID:-}" ]; then
  PBS_NODEFILE=$GRYPHUS_LAUNCHERS/nodes
  export PBS_NODEFILE
  node=0
  while [ "$node" -lt "$_CONDOR_NPROCS" ]; do
    rank=0
    while [ "$rank" -lt "$ranks" ]; do
      echo "node$node"
      rank=$((rank + 1))
    done
    node=$((node + 1))
  done >"$PBS_NODEFILE"
fi
exec "$@"
