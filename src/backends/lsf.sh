# Gryphus: LSF's commands, the shell half of lsf.ts, sourced by jobmanager.sh.
# shellcheck source=/dev/null
. "$BIN/job-script.sh"
QUEUE_HEADING=JOB_NAME
PARALLEL_SUBMITS=${GRYPHUS_SUBMITS:-8}
LSF_USER=$(id -un)

backend_start() { :; }
backend_version() { command -v bsub >/dev/null && bounded 20 bsub -V 2>&1 </dev/null | head -n 1; }
wait_for_event() { tick; }
backend_submit_all() { in_parallel "$1" "$PARALLEL_SUBMITS" submit_one; }

# Our options come last and so win over the user's. A shell would split a command's words again; a script avoids that.
backend_submit() { # $1 key, $2 submission, then our options
  # shellcheck disable=SC2016 # for the script
  job_script "$1" "$2" '${LSB_JOBID:--}' '#' || return
  shift 2
  ID=$(cd / && bounded 60 bsub "$@" -rn -J "$TAG" -o /dev/null -e /dev/null <"$SCRIPT")
}

# An element's name ends in its index, and so does its id: 123[3].
backend_submit_array() { # $1 tag, $2 how many, then our options
  # shellcheck disable=SC2016 # for the script
  group_script "$1" '$LSB_JOBINDEX' '$LSB_JOBID[$LSB_JOBINDEX]' '#' || return
  tag=$1 count=$2
  shift 2
  ID=$(cd / && bounded 60 bsub "$@" -rn -J "${tag}[1-$count]" -o /dev/null -e /dev/null <"$SCRIPT")
}
find_array_limit() {
  ARRAY_LIMIT=$(bounded 20 bparams -a 2>/dev/null </dev/null | LC_ALL=C awk '$1 == "MAX_JOB_ARRAY_SIZE" { print $3 }')
  ARRAY_LIMIT=${ARRAY_LIMIT:-1000}
}
backend_elements() { # $1 the answer
  case $1 in 'Job <'[0-9]*'> is submitted'*) BEFORE="${1%%>*}[" FIRST=1 AFTER="]>${1#*>}" ;; esac
}

# Asked for with the heading; -a includes recently ended jobs (CLEAN_PERIOD). Without jobs LSF prints a sentence and no
# heading.
# shellcheck disable=SC2016 # awk's: appends the index in an element's name to its id, if missing
LSF_ID='function id(index_) {
  if (match($0, /^[^|]*\[[0-9]+\]\|[0-9]+\|/)) {
    index_ = substr($0, 1, RLENGTH)
    sub(/^[^|]*\[/, "[", index_)
    sub(/\].*/, "]", index_)
    $0 = substr($0, 1, RLENGTH - 1) index_ substr($0, RLENGTH)
  }
}'
lsf_jobs() { # $1 fields
  bounded 30 bjobs -u "$LSF_USER" -a -o "$1 delimiter='|'" >|"$T/bjobs" 2>|"$T/bjobs-said" </dev/null
  status=$?
  [ -s "$T/bjobs" ] && return "$status"
  grep -E 'No (unfinished )?job found' "$T/bjobs-said" >/dev/null && return 0
  if grep -E "(invalid|illegal) option -- '?o" "$T/bjobs-said" >/dev/null; then
    say 'its bjobs has no -o: LSF 9.1.3 or later is needed' >&2
  else
    cat "$T/bjobs-said" >&2
  fi
  return 1
}
backend_queue() {
  lsf_jobs 'job_name jobid stat exit_code exec_host exit_reason pend_reason' || return
  [ -s "$T/bjobs" ] || { say "$QUEUE_HEADING" && return; }
  LC_ALL=C awk 'NR == 1 { sub(/\|.*/, ""); print; next } { id(); sub(/\|/, " "); sub(/\|/, " "); print } '"$LSF_ID" "$T/bjobs"
}

# bacct folds long lines after blanks. Keeps each job's id, name and last line.
backend_account() { # ids
  bounded 60 bacct -l "$@" >|"$T/bacct" 2>/dev/null </dev/null
  [ -s "$T/bacct" ] || return 0
  LC_ALL=C awk '
    function take(text, id, name) {
      if (match(text, /^Job <[0-9]+(\[[0-9]+\])?>/)) {
        id = substr(text, 6, RLENGTH - 6)
        match(text, /Job Name <[^>]*>/)
        name = substr(text, RSTART + 10, RLENGTH - 11)
        job = id "|" name
      } else if (match(text, /Completed <[a-z]+>/)) print job "|" substr(text, RSTART)
    }
    /^     / { sub(/^ +/, ""); text = text $0; next }
    { take(text); text = $0 }
    END { take(text) }' "$T/bacct"
}

# bkill sends INT, TERM and KILL some seconds apart; with -r LSF forgets what does not end. A job that is already over
# is not an error.
backend_cancel() { # $1 how, $2 tags
  lsf_jobs 'job_name jobid stat' || return
  # shellcheck disable=SC2046 # ids have no blanks
  set -- "$1" $(LC_ALL=C awk '{ id(); print } '"$LSF_ID" "$T/bjobs" | elements | LC_ALL=C awk -F '|' -v "tags=$2" '
    BEGIN { n = split(tags, list, " "); for (i = 1; i <= n; i++) ours[list[i]] = 1 }
    $1 in ours && $3 !~ /DONE|EXIT/ { print $2 }')
  [ $# -gt 1 ] || return 0
  how=$1
  shift
  case $how in KILL) set -- -s KILL "$@" ;; FORCE) set -- -r "$@" ;; esac
  words=$(bounded 60 bkill "$@" 2>&1 </dev/null) && return
  case $words in *'already finished'* | *'No matching job found'*) return 0 ;; esac
  say "$words" >&2
  return 1
}

# Free slots, and all slots, of hosts that take jobs.
backend_capacity() {
  bounded 20 bhosts -w | LC_ALL=C awk '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    $2 ~ /^(ok|closed_(Full|Busy|Excl|Adm_Full|cu_Excl))$/ && $(column["MAX"]) ~ /^[0-9]+$/ {
      all += $(column["MAX"])
      if ($2 == "ok") free += $(column["MAX"]) - $(column["NJOBS"])
    }
    END { if (NR) printf "%d %d\n", free, all }'
}
backend_queues() { bounded 20 bqueues | LC_ALL=C awk 'NR > 1 { print $1 }'; }
backend_has() { bounded 20 bqueues "$1" >/dev/null && say "$1 is there"; }
