#!/bin/sh
# Runs job $1 when it may start, to its end.
. "${0%/*}/engine.sh"
cd "$JOBS/$1" || exit
sleep 0.2
get begin
[ -z "$VALUE" ] || sleep "$VALUE"
while get state && [ "$VALUE" = held ]; do sleep 0.2; done
mkdir started 2>/dev/null || exit
get walltime
if [ -n "$VALUE" ]; then
  (
    sleep "$VALUE"
    get state
    [ "$VALUE" = running ] || exit
    put overtime 1
    remove_job "$1" the-clock
  ) &
fi
date +%s >started-at
put state running
# A wait status tells a signal from an exit; a shell's does not.
perl -MPOSIX -e '
  my $pid = fork;
  if (!$pid) { POSIX::setsid(); chdir "/"; exec @ARGV; POSIX::_exit(127) }
  open(my $file, ">", "pid.new"); print $file "$pid\n"; close $file; rename "pid.new", "pid";
  waitpid $pid, 0;
  open($file, ">", "exit.new"); print $file "$?\n"; close $file; rename "exit.new", "exit";' sh "$JOBS/$1/start.sh"
date +%s >ended-at
get pid
pkill -KILL -s "$VALUE"
get removed
[ -z "$VALUE" ] || sleep "${LINGER:-0}"
put state ended
