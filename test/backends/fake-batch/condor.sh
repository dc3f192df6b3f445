#!/bin/sh
# condor_submit, condor_q, condor_rm, condor_history and condor_version as HTCondor 25.14 prints them
# (test/fixtures/htcondor), over engine.sh. $1: the command's name.
. "${0%/*}/engine.sh"
command=$1
shift
SOFT_KILL=main
fail() { # $1 status, $2 words
  printf '%s\n' "$2" >&2
  exit "$1"
}

condor_version() {
  # shellcheck disable=SC2016 # literal
  printf '%s\n' '$CondorVersion: 25.14.0 2026-11-20 PRE-RELEASE-UWCS $' '$CondorPlatform: X86_64-Debian_12 $'
}

condor_submit() {
  append=
  while [ $# -gt 1 ]; do
    case $1 in
      -terse) ;;
      -append) append=$append$2'
' && shift ;;
      *) fail 1 "Usage: condor_submit [options] [<attrib>=<value>] [- | <submit-file>]" ;;
    esac
    shift
  done
  [ -f "$1" ] || fail 1 "
ERROR: Failed to open command file ($1) (No such file or directory)"
  submit=$FAKE_BATCH/making/submit.$$
  { printf %s "$append"; cat "$1"; } >"$submit"
  value() { sed -n "s/^$1 *= *//p" "$submit" | head -n 1; }
  program=$(value executable)
  if [ -z "$program" ]; then
    printf 'Submitting job(s)'
    fail 1 "ERROR: No 'executable' parameter was provided"
  fi
  case $(value universe) in vanilla | '') ;; *)
    printf 'Submitting job(s)'
    fail 1 "ERROR: I don't know about the '$(value universe)' universe."
    ;;
  esac
  # `queue VAR, VAR from (`, an item a line, or a single job. What is in the queue is there as a whole.
  variables=$(sed -n 's/^queue \(.*\) from ($/\1/p' "$submit" | tr ',' ' ')
  items=$(sed '1,/^queue .* from ($/d; /^)$/,$d' "$submit")
  [ -n "$variables" ] || items=-
  cluster='' proc=0 made=
  while IFS= read -r item; do
    new_job
    : "${cluster:=$ID}"
    put "$JOB/element" "$cluster.$proc"
    cp "$submit" "$JOB/submit"
    # shellcheck disable=SC2086 # words
    set -- $item
    for name in $variables; do
      sed "s/\$($name)/$1/g" "$JOB/submit" >"$JOB/submit.new"
      mv "$JOB/submit.new" "$JOB/submit"
      shift
    done
    one_job
    made="$made $ID"
    proc=$((proc + 1))
  done <<END
$items
END
  rm "$submit"
  for ID in $made; do
    JOB=$FAKE_BATCH/making/$ID
    publish_job
  done
  echo "$cluster.0 - $cluster.$((proc - 1))"
}
one_job() {
  value() { sed -n "s/^$1 *= *//p" "$JOB/submit" | head -n 1; }
  # New syntax: within double quotes, blanks between, single quotes around a word, either doubled where it is meant.
  # shellcheck disable=SC2016 # perl's
  value arguments | ID=$cluster PROC=$proc perl -ne '
    s/\$\(ClusterId\)/$ENV{ID}/g; s/\$\(ProcId\)/$ENV{PROC}/g; s/\$\(DOLLAR\)/\$/g;
    s/^"(.*)"\n?$/$1/ or die "no new syntax"; s/""/"/g;
    my ($word, $quoted, $in, @words) = ("", 0, 0);
    my @c = split //;
    for (my $i = 0; $i < @c; $i++) {
      if ($c[$i] eq "\x27") {
        if ($quoted && ($c[$i + 1] // "") eq "\x27") { $word .= "\x27"; $i++ } else { $quoted = !$quoted; $in = 1 }
      } elsif ($c[$i] eq " " && !$quoted) { push @words, $word if $in; ($word, $in) = ("", 0) }
      else { $word .= $c[$i]; $in = 1 }
    }
    push @words, $word if $in;
    print "exec ", $ARGV[0] // "";
    s/\x27/\x27\\\x27\x27/g for @words;
    print "/bin/sh ", join(" ", map { "\x27$_\x27" } @words), "\n";' >"$JOB/start.sh"
  value '+GryphusKey' | tr -d '"' >"$JOB/name"
  limit=$(sed -n 's/^periodic_remove.*JobCurrentStartDate > \([0-9]*\)).*/\1/p' "$JOB/submit")
  [ -z "$limit" ] || put "$JOB/walltime" "$limit"
  case $(value hold) in [Tt]rue) put "$JOB/state" held ;; esac
}

# JobStatus LastJobStatus
status_of() { # $1 id
  cd "$JOBS/$1" || return
  get removed && removed=$VALUE
  get state
  case $VALUE in
    queued) status=1 host=undefined reason=undefined code="undefined undefined" ;;
    held) status=5 host=undefined reason="submitted on hold at user's request" code="15 0" ;;
    running) status=2 host=slot1_1@node1.htc.example reason=undefined code="undefined undefined" && [ -z "$removed" ] || status=3 ;;
    ended) status=4 && [ -z "$removed" ] || status=3 ;;
  esac
  get name
}
show_live() {
  status_of "$1"
  get state
  [ "$VALUE" = ended ] && return
  # It is counted when the job leaves its host.
  get name
  tag=$VALUE
  get element
  echo "$tag ${VALUE%.*} ${VALUE#*.} $status 0 $code $host $reason"
}
condor_q() {
  case $1 in
    -totals)
      printf '\n\n-- Schedd: node1.htc.example : <127.0.0.1:9618?... @ 11/20/26 23:36:39\n'
      echo "Total for query: 0 jobs; 0 completed, 0 removed, 0 idle, 0 running, 0 held, 0 suspended "
      ;;
    -constraint) each_job show_live ;;
    *) fail 1 "Error: unrecognised argument $1" ;;
  esac
}

show_ended() {
  get "$JOBS/$1/element"
  case "$wanted" in *"(ClusterId == ${VALUE%.*} && ProcId == ${VALUE#*.})"*) ;; *) return ;; esac
  status_of "$1"
  get state
  [ "$VALUE" = ended ] || return
  last=1 by_signal=undefined signal=undefined code=undefined reason=undefined
  if [ -f exit ]; then
    last=2
    get exit
    if [ $((VALUE & 127)) -ne 0 ]; then by_signal=true signal=$((VALUE & 127)); else by_signal=false code=$((VALUE / 256)); fi
  fi
  if [ -f overtime ]; then
    reason="The job attribute PeriodicRemove expression '(JobStatus == 1 && NumJobStarts > 0) || (JobStatus == 2 && time() - JobCurrentStartDate > 4)' evaluated to TRUE"
  elif [ "$status" = 3 ]; then
    reason="via condor_rm (by user $(id -un))" by_signal=true signal=15
  fi
  get element
  id=$VALUE
  get name
  echo "${id%.*} ${id#*.} $VALUE $status $last $by_signal $signal $code $reason"
}
condor_history() {
  wanted=$2
  each_job show_ended
}

condor_rm() {
  force=
  [ "$1" != -forcex ] || { force=1 && shift; }
  case $1 in
    -constraint)
      names=$(printf '%s' "$2" | sed 's/.*, "\(.*\)")/\1/')
      found='' any=
      for id in $(ls "$JOBS"); do
        get "$JOBS/$id/name" && name=$VALUE
        get "$JOBS/$id/state"
        [ "$VALUE" = ended ] || any=1
        case ",$names," in *",$name,"*) ;; *) continue ;; esac
        [ "$VALUE" != ended ] || continue
        get "$JOBS/$id/removed"
        # Only what was removed before can be forgotten.
        if [ -n "$force" ]; then
          [ -z "$VALUE" ] || { found=1 && forget_job "$id" "$(id -un)"; }
        elif out_of_reach "$id"; then
          found=1
          put "$JOBS/$id/removed" "$(id -un)"
        else
          found=1
          remove_job "$id" "$(id -un)"
        fi
      done
      [ -n "$any" ] || fail 0 'There are no jobs in the queue'
      [ -n "$found" ] || fail 1 "
Couldn't find/remove all jobs matching constraint ($2)"
      echo "All jobs matching constraint ($2) have been marked for removal"
      ;;
    *)
      dir=$(cd "$JOBS" && grep -lxF "$1" -- */element 2>/dev/null) && dir=${dir%/element}
      if get "$JOBS/$dir/state" && [ -n "$VALUE" ] && [ "$VALUE" != ended ]; then
        remove_job "$dir" "$(id -un)"
        echo "Job $1 marked for removal"
      else
        fail 1 "
Job $1 not found"
      fi
      ;;
  esac
}
"$command" "$@"
