#!/bin/busybox sh
# The first process of a virtual machine of arm64 (arm64-slow.test.ts): moves programs, and says how they ended.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs devices /dev
mount -t tmpfs files /tmp
H=gryphus-helper

# begin NAME COMMAND…: in a sandbox of its own, until it has written something
begin() {
  name=$1
  shift
  mkdir -p "/tmp/$name" "/tmp/$name.2"
  : >"/tmp/$name.out"
  (cd "/tmp/$name" && exec $H run "$@" >"/tmp/$name.out" 2>&1 </dev/null) &
  job=$!
  while [ ! -s "/tmp/$name.out" ]; do usleep 20000; done
}
dump() {
  $H dump --pid "$job" --sandbox "/tmp/$name" --to "/tmp/$name.image" --stdout "/tmp/$name.out" --stderr "/tmp/$name.out" "$@" >/dev/null
}
restore() { $H restore --from "/tmp/$name.image" --sandbox "/tmp/$name.2" >>"/tmp/$name.out" 2>&1 </dev/null; }
# tell CODE: how it ended, and its last line
tell() { echo "GUEST $name: $1 $(tail -n 1 "/tmp/$name.out")"; }

# move NAME MOVES MICROSECONDS COMMAND…: into another sandbox after each pause
move() {
  name=$1 most=$2 pause=$3
  shift 3
  mkdir -p "/tmp/$name.0"
  out=/tmp/$name.out
  (cd "/tmp/$name.0" && exec $H run "$@" >"$out" 2>&1 </dev/null) &
  job=$! how=--pid moved=0
  while [ "$moved" -lt "$most" ]; do
    usleep "$pause"
    kill -0 "$job" 2>/dev/null || break
    $H dump $how "$job" --sandbox "/tmp/$name.$moved" --to "/tmp/$name.image" --stdout "$out" --stderr "$out" --kill >/dev/null 2>&1 || continue
    wait "$job" 2>/dev/null
    moved=$((moved + 1)) how=--below
    mkdir "/tmp/$name.$moved"
    (exec $H restore --from "/tmp/$name.image" --sandbox "/tmp/$name.$moved" >>"$out" 2>&1 </dev/null) &
    job=$!
  done
  wait "$job"
  tell "$? moves $moved"
}

$H probe | cut -d ' ' -f 1-2 | sed 's/^/GUEST probe: /'
gryphus-remote-io probe && echo 'GUEST remote-io: works'

begin here interrupted sleeps 6000
dump && dump && dump
wait "$job"
tell $?
begin elsewhere interrupted sleeps 3000
dump && dump --kill
restore
tell $?
for kill in '' --kill; do
  begin "signal$kill" interrupted signal
  dump $kill &
  dumping=$!
  while grep -q 'TracerPid:.0' "/proc/$job/status"; do :; done
  kill -USR1 "$job"
  wait "$dumping"
  if [ -n "$kill" ]; then restore; else wait "$job"; fi
  tell $?
done
begin vectors vectors 2000
for n in 1 2 3 4 5 6; do dump && usleep 50000; done
wait "$job"
tell $?
move vectors.moved 5 300000 vectors 2000
echo "GUEST alone: $(threads 3000 | md5sum)"
move threads 5 200000 threads 3000
echo "GUEST threads.out: $(md5sum </tmp/threads.out)"
echo "GUEST seq: $(seq 1 20000 | md5sum)"
move children 4 200000 sh -c 'seq 1 20000 | gzip >o.gz; for i in 1 2 3 4 5 6 7 8; do sleep 0.1; echo $i; done; zcat o.gz | md5sum; exit 5'
locks() { awk '{ print $2, $4, $7, $8 }' /proc/locks | sort | tr '\n' ';'; }
begin locks all-kinds
echo "GUEST locks before: $(locks)"
dump --kill
$H restore --from /tmp/locks.image --sandbox /tmp/locks.2 --report /tmp/report >/dev/null 2>&1 </dev/null &
restored=$!
until grep -q . /tmp/report 2>/dev/null; do usleep 20000; done
echo "GUEST locks: $(locks)"
kill -9 "$restored"
poweroff -f
