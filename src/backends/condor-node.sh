#!/bin/sh
# Gryphus: what HTCondor starts on each machine of a parallel job.
#   condor-node.sh RANKS WRAPPER ROOT KEY N …
# On the first machine it becomes the wrapper, once all the others have told their names: $GRYPHUS_NODEFILE has a line
# with the name of a machine for each of its ranks. The others wait; HTCondor ends them when the first one has ended.
set -u
umask 077
ranks=$1
shift
hosts=$2/jobs/$3/hosts.$4
node=${_CONDOR_PROCNO:-0} count=${_CONDOR_NPROCS:-1}
mkdir "$hosts" 2>/dev/null || [ -d "$hosts" ] || exit 216
uname -n >"$hosts/$node.new" && mv -f "$hosts/$node.new" "$hosts/$node" || exit 218
[ "$node" = 0 ] || exec sleep 2147483647
names_there() { # lists the directory, because a network file system may cache for long that a name does not exist
  (
    cd "$hosts" || exit 216
    names=0
    for name in *; do case $name in *[!0-9]*) ;; *) names=$((names + 1)) ;; esac; done
    [ "$names" -eq "$count" ]
  )
}
pause=0.1
sleep 0.01 2>/dev/null || pause=1
until names_there; do
  # It was removed in the meantime.
  [ -d "$hosts" ] || exit 217
  sleep "$pause"
done
GRYPHUS_NODEFILE=$hosts/file
export GRYPHUS_NODEFILE
while [ "$node" -lt "$count" ]; do
  IFS= read -r name <"$hosts/$node"
  rank=0
  while [ "$rank" -lt "$ranks" ]; do
    printf '%s\n' "$name"
    rank=$((rank + 1))
  done
  node=$((node + 1))
done >"$GRYPHUS_NODEFILE" || exit 218
exec /bin/sh "$@"
