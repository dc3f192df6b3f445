# Gryphus: a job as a script file, for batch systems that require one. Sourced by a backend's shell half.

quoted() { # $1 as one shell word
  printf "'"
  printf %s "$1" | sed "s/'/'\\\\''/g"
  printf "'"
}
# A script that is piped into a submit command may arrive cut short; a file is whole.
# $1 key, $2 submission, $3 the job's id as the script can tell it, $4 a line for the batch system: sets SCRIPT
job_script() {
  SCRIPT=$ROOT/jobs/$1/job.$2
  write_script "$@"
}
group_script() { # $1 tag, $2 the index and $3 the id as the script can tell them, $4 as above: sets SCRIPT
  SCRIPT=$ROOT/groups/$1/job
  write_script "$@"
}
write_script() {
  {
    say '#!/bin/sh'
    say "$4"
    # TERM goes to every process of the job, so the wrapper forwards nothing.
    say "exec /bin/sh $(quoted "$BIN/wrapper.sh") $(quoted "$ROOT") $1 \"$2\" '' \"$3\""
  } >|"$SCRIPT"
}
