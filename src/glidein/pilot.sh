#!/bin/sh
# Gryphus: a pilot. It checks the node that the batch system gave it, then becomes a worker of the agent that sent it.
#   pilot.sh CONFIG
# CONFIG  the worker's configuration in this directory (JSON, 0600), in which "@ENDS@" is filled in here; next to it
#         `node` and `worker.mjs`, and `need`, lines of `NAME VALUE`: disk-kb, memory-kb, glibc, arch, made, walltime,
#         scratch (a directory, or $NAME of a variable that holds it), node-sha256, worker-sha256,
#         and helper-sha256 and remote-io-sha256 if there are `gryphus-helper`, which checkpoints jobs, and
#         `gryphus-remote-io`, by which they reach files at home.
# Exit status: the worker's own, or 65 if this node cannot run it. Standard error says why, in a line `pilot: …`.
set -u
umask 077
CONFIG=$1
HERE=$(pwd)
STARTED=$(date +%s)

no() {
  printf 'pilot: cannot run on %s: %s\n' "$(uname -n)" "$1" >&2
  exit 65
}

disk_kb=0 memory_kb=0 glibc='' arch='' made=0 walltime=0 scratch='' node_sha256='' worker_sha256='' helper_sha256='' remote_sha256=''
while read -r name value; do
  case $name in
    disk-kb) disk_kb=$value ;;
    memory-kb) memory_kb=$value ;;
    glibc) glibc=$value ;;
    arch) arch=$value ;;
    made) made=$value ;;
    walltime) walltime=$value ;;
    scratch) scratch=$value ;;
    node-sha256) node_sha256=$value ;;
    worker-sha256) worker_sha256=$value ;;
    helper-sha256) helper_sha256=$value ;;
    remote-io-sha256) remote_sha256=$value ;;
  esac
done <need || no 'its list of needs is missing.'

# The kind of machine.
[ "$(uname -s)" = Linux ] || no "it runs $(uname -s), but the worker needs Linux."
case $(uname -m) in
  x86_64 | amd64) found=x64 ;;
  aarch64 | arm64) found=arm64 ;;
  *) found=$(uname -m) ;;
esac
[ -z "$arch" ] || [ "$found" = "$arch" ] || no "its processor is $found, but the pilot was built for $arch."

older() { # whether version $1 is older than $2, both MAJOR.MINOR
  [ "${1%%.*}" -lt "${2%%.*}" ] || { [ "${1%%.*}" -eq "${2%%.*}" ] && [ "${1#*.}" -lt "${2#*.}" ]; }
}
if [ -n "$glibc" ]; then
  libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || libc=
  libc=${libc#glibc }
  case $libc in
    [0-9]*.[0-9]*) libc=${libc%%.*}.$(printf '%s' "${libc#*.}" | sed 's/[^0-9].*//') ;;
    *) no "it has no GNU C library, but Node needs glibc $glibc." ;;
  esac
  ! older "$libc" "$glibc" || no "its glibc is $libc, but Node needs $glibc."
fi

# With a clock far behind, expired tokens would look valid and deadlines far away.
[ "$STARTED" -ge $((made - 86400)) ] || no "its clock is $(((made - STARTED) / 3600)) hours behind."

# A pilot that was killed could not remove its worker's directory; the next one on that machine does. `lives` there names
# the processes that may still use it, in lines `HOST BOOT PID START`.
BOOT=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
identity() { # of process $1: the line above
  start=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20)
  [ -z "$start" ] || printf '%s %s %s %s\n' "$(uname -n)" "$BOOT" "$1" "$start"
}
is_dead() { # whether nothing here uses the worker's directory $1
  [ -n "$BOOT" ] && [ -O "$1" ] && [ -s "$1/lives" ] || return 1
  while read -r host boot pid start; do
    [ "$host" = "$(uname -n)" ] || return 1
    [ "$boot" != "$BOOT" ] || [ "$host $boot $pid $start" != "$(identity "$pid")" ] || return 1
  done <"$1/lives"
  # Its jobs may have outlived it.
  real=$(cd -P -- "$1" && pwd) || return 1
  # shellcheck disable=SC2010 # the names are numbers
  ! ls -l /proc/[0-9]*/cwd 2>/dev/null | grep -qF -- " -> $real/"
}
clear_dead() { # the directories of dead workers in $1
  for old in "$1"/gryphus-worker.*; do
    if [ -d "$old" ] && is_dead "$old"; then rm -rf "$old"; fi
  done
}

# The worker's directory: the batch system's scratch directory for this job if there is one, else next to this script.
free_kb() { df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }
DIR=
case $scratch in '$'*) eval "scratch=\${${scratch#?}-}" ;; esac
for place in "$scratch" "$HERE"; do
  if [ -z "$place" ] || [ ! -d "$place" ] || [ ! -w "$place" ]; then continue; fi
  clear_dead "$place"
  free=$(free_kb "$place")
  [ "${free:-0}" -ge "$disk_kb" ] || { short="$place has ${free:-0} KB free"; continue; }
  DIR=$place/gryphus-worker.$$
  mkdir "$DIR" 2>/dev/null && break
  DIR=
done
[ -n "$DIR" ] || no "it has too little disk space: ${short-no directory is writable}, and $disk_kb KB are needed."

have=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null)
[ -z "$have" ] || [ "$have" -ge "$memory_kb" ] || no "it has $have KB of free memory, but $memory_kb are needed."

# The site's copy may have changed since it was sent.
sha256() {
  for tool in sha256sum 'shasum -a 256' 'openssl dgst -sha256 -r' 'busybox sha256sum'; do
    sum=$($tool <"$1" 2>/dev/null) && { printf '%s' "${sum%% *}"; return; }
  done
}
whole() { # file $1 has the hash $2; a damaged copy is dropped, and the next pilot gets a new one
  sum=$(sha256 "$1")
  if [ -z "$2" ] || [ -z "$sum" ] || [ "$sum" = "$2" ]; then return; fi
  rm -f "$HERE/../../../cache/$2" "$HERE/../../../cache/$2.x"
  no "its $1 is not what was sent: its SHA-256 is $sum."
}
whole node "$node_sha256"
whole worker.mjs "$worker_sha256"
# What checkpoints jobs: without it everything else works.
if [ -n "$helper_sha256" ]; then
  whole gryphus-helper "$helper_sha256"
  chmod u+x gryphus-helper 2>/dev/null
fi
# The same for what answers jobs' calls about files at home.
if [ -n "$remote_sha256" ]; then
  whole gryphus-remote-io "$remote_sha256"
  chmod u+x gryphus-remote-io 2>/dev/null
fi

# If it does not run, its own error message is the best explanation.
chmod u+x node 2>/dev/null
version=$(./node --version 2>&1) || no "Node does not run: $(printf '%s' "$version" | head -n 1)"

[ "$walltime" -gt 0 ] && ends=$((STARTED + walltime)) || ends=0
trap 'rm -rf "$DIR"' EXIT
identity $$ >"$DIR/lives"
sed "s|\"@ENDS@\"|$ends|" "$CONFIG" >"$DIR/worker.json" || no 'the disk is full.'
rm -f "$CONFIG"
printf 'pilot: on %s, node %s, in %s\n' "$(uname -n)" "$version" "$DIR" >&2

WORKER='' TOLD='' TRIES=0
# Passes on the batch system's warning, so that the worker ends its jobs in an orderly way.
tell() {
  TOLD=1
  [ -z "$WORKER" ] || kill -TERM "$WORKER" 2>/dev/null
}
trap tell TERM INT HUP USR1 USR2 XCPU
while :; do
  began=$(date +%s)
  ./node worker.mjs "$DIR/worker.json" &
  WORKER=$!
  identity "$WORKER" >>"$DIR/lives"
  [ -z "$TOLD" ] || tell
  status=0
  while :; do # a signal ends the wait, not the worker
    wait "$WORKER"
    status=$?
    kill -0 "$WORKER" 2>/dev/null || break
  done
  # A worker that was killed left its jobs running, and results of those that ended; the next one in its directory finds
  # them. With a worker that is given up they are lost, so only one that dies a score of times within a minute each is;
  # if it has jobs, only after another hundred tries, with pauses.
  [ $(($(date +%s) - began)) -lt 60 ] || TRIES=0
  MOST=20
  [ -z "$(ls -A "$DIR/jobs" 2>/dev/null)" ] || MOST=120
  if [ "$status" -le 128 ] || [ -n "$TOLD" ] || [ "$TRIES" -ge "$MOST" ]; then break; fi
  TRIES=$((TRIES + 1))
  printf 'pilot: the worker died (status %d); restarting it\n' "$status" >&2
  [ "$TRIES" -le 20 ] || { sleep 30 & wait $!; }
done
case $status:$TOLD in
  # Drained, idle or alone; another worker runs there; no longer wanted; told to end.
  0:* | 75:* | 77:* | *:1) ;;
  *) printf 'pilot: the worker failed on %s: it exited with status %d\n' "$(uname -n)" "$status" >&2 ;;
esac
exit "$status"
