# Gryphus: Grid Engine's commands (Sun's, Son of, Univa's, Altair's), the shell half of sge.ts, sourced by
# jobmanager.sh.
QUEUE_HEADING=TAG
PARALLEL_SUBMITS=${GRYPHUS_SUBMITS:-8}
SGE_USER=$(id -un)

backend_start() { :; }
# The first line of `qstat -help` is the version; it needs no qmaster.
backend_version() { command -v qstat >/dev/null && bounded 20 qstat -help 2>&1 | head -n 1; }
wait_for_event() { tick; }

backend_submit_all() {
  [ -n "${GRYPHUS_PE-}" ] || find_environment
  in_parallel "$1" "$PARALLEL_SUBMITS" submit_one
}
# The parallel environment for several slots on one host has a different name at each site.
find_environment() {
  GRYPHUS_PE=smp
  for name in $(bounded 20 qconf -spl 2>/dev/null </dev/null); do
    case $(bounded 20 qconf -sp "$name" 2>/dev/null </dev/null) in *allocation_rule*\$pe_slots*) ;; *) continue ;; esac
    case $name in smp | threaded | shm | openmp) GRYPHUS_PE=$name && return ;; esac
    [ "$GRYPHUS_PE" != smp ] || GRYPHUS_PE=$name
  done
}

# $1 what follows the number of slots: sets PE to the parallel environment
environment_for() {
  case $1 in
    '') PE=$GRYPHUS_PE ;;
    =*)
      for PE in $(bounded 20 qconf -spl 2>/dev/null </dev/null); do
        rule=$(bounded 20 qconf -sp "$PE" 2>/dev/null </dev/null | LC_ALL=C awk '$1 == "allocation_rule" { print $2 }')
        [ "$rule" != "${1#=}" ] || return 0
      done
      say "Unable to run job: no parallel environment here has the allocation_rule ${1#=} for the slots of each machine. Name one: parallel_environment in the site's file." >&2
      return 1
      ;;
    *) PE=$1 ;;
  esac
}
submit_with() { # $1 the first of our options, which is about slots, then the others and qsub's words
  case $1 in
    -) shift ;;
    *)
      slots=${1%%@*} rest=${1#"${1%%@*}"}
      shift
      environment_for "${rest#@}" || return
      set -- -pe "$PE" "$slots" "$@"
      ;;
  esac
  ID=$(bounded 60 qsub -r n "$@" </dev/null)
}

# Our words come last and so win over the user's and the site's defaults.
# The name is the tag because qstat and qacct show it. `/` exists on every host; an orphan's directory may not.
backend_submit() { # $1 key, $2 submission, then our options
  key=$1 n=$2
  shift 2
  submit_with "$@" -terse -b n -C '' -S /bin/sh -N "$TAG" -wd / -o /dev/null -e /dev/null -j n -m n \
    "$BIN/sge-job.sh" "$BIN/wrapper.sh" "$ROOT" "$key" "$n"
}

# Each task has a line with its index. max_aj_tasks limits the size of an array.
backend_submit_array() { # $1 tag, $2 how many, then our options, as above
  tag=$1 count=$2
  shift 2
  submit_with "$@" -terse -b n -C '' -S /bin/sh -N "$tag" -t "1-$count" -wd / -o /dev/null -e /dev/null -j n -m n \
    "$BIN/sge-job.sh" "$BIN/wrapper.sh" "$ROOT" "$tag" array
}
find_array_limit() {
  [ -n "${GRYPHUS_PE-}" ] || find_environment
  ARRAY_LIMIT=$(bounded 20 qconf -sconf 2>/dev/null </dev/null | LC_ALL=C awk '$1 == "max_aj_tasks" { print $2 }')
  case $ARRAY_LIMIT in '') ARRAY_LIMIT=1000 ;; 0) ARRAY_LIMIT=75000 ;; esac
}
backend_elements() { # $1 the answer
  case $1 in *[!0-9.:-]*) ;; *) BEFORE=${1%%.*}. FIRST=1 ;; esac
}

# Reduces the listing in $T/qstat to the heading and a line for each of our jobs, or for all elements of an array that
# wait alike (-g d would make megabytes of a thousand elements). The listing is used only if its last tag is there and
# its lists of tasks can be read.
listed() {
  LC_ALL=C awk -v "heading=$QUEUE_HEADING" '
    function text() { sub(/^[^>]*>/, ""); sub(/<\/.*/, ""); return $0 }
    /<job_list/ { id = name = state = queue = task = "" }
    /<JB_job_number>/ { id = text() }
    /<JB_name>/ { name = text() }
    /<state>/ { state = text() }
    /<queue_name>/ { queue = text() }
    /<tasks>/ { task = text() }
    /<\/job_list>/ && index(name, "gryphus.") == 1 {
      if (task !~ /^[0-9,:-]*$/) odd = "tasks " task
      if (task != "") { name = name "[" task "]"; id = id "." (task ~ /^[0-9]+$/ ? task : "[" task "]") }
      line[++n] = name " " id " " state "|" queue "|"
    }
    { last = $0 }
    END {
      if (last !~ /^<\/job_info>/) { print last; exit }
      if (odd != "") { print odd; exit }
      print heading
      for (i = 1; i <= n; i++) print line[i]
    }' "$T/qstat"
}
# Asks for the reasons of at most 20 jobs: those in error first, then those that wait.
backend_queue() {
  bounded 30 qstat -u "$SGE_USER" -s prs -xml >|"$T/qstat" || return
  listed >|"$T/queue-lines"
  # shellcheck disable=SC2046 # ids
  set -- $(LC_ALL=C awk -v "prefix=$PREFIX" 'index($1, prefix) == 1 { split($3, part, "|")
    id = $2
    sub(/[.].*/, "", id)
    if (part[1] !~ /E|^h?qw$/ || id in seen) next
    seen[id] = 1
    if (part[1] ~ /E/) error = error " " id; else wait = wait " " id }
    END { n = split(error wait, all, " "); for (i = 1; i <= n && i <= 20; i++) print all[i] }' "$T/queue-lines")
  if [ $# -eq 0 ]; then
    cat "$T/queue-lines"
    return
  fi
  list=$(printf '%s,' "$@")
  bounded 30 qstat -j "${list%,}" 2>/dev/null >|"$T/reasons"
  LC_ALL=C awk '
    { reasons = FILENAME == ARGV[1] }
    reasons && $1 == "job_number:" { id = $2 }
    reasons && /^error reason/ && !(id in why) { sub(/^error reason *[0-9]*: */, ""); why[id] = $0 }
    reasons && /^scheduling info:/ && !(id in why) && !/\(-l none\)|turned off/ { sub(/^scheduling info: */, ""); why[id] = $0 }
    !reasons { id = $2; sub(/[.].*/, "", id); if (FNR > 1 && (id in why)) $0 = $0 why[id]; print }' "$T/reasons" "$T/queue-lines"
}

# One search by name covers all jobs, but its date limit counts whole days. Each record becomes one line of fields
# separated by bars.
backend_account() { # ids
  report=$(bounded 60 qacct -o "$SGE_USER" -j "$PREFIX*" -d 15) || return
  printf '%s\n' "$report" | LC_ALL=C awk -v "ids=$*" '
    BEGIN { n = split(ids, list, " "); for (i = 1; i <= n; i++) want[list[i]] = 1 }
    function done(id, name) {
      id = field["jobnumber"]
      name = field["jobname"]
      if (field["taskid"] ~ /^[0-9]+$/) { name = name "[" field["taskid"] "]"; id = id "." field["taskid"] }
      if (id in want) print id "|" name "|" field["failed"] "|" field["exit_status"] "|" field["start_time"] "|" field["end_time"] "|" field["hostname"] "|" field["maxvmem"] "|" field["slots"] "|" field["category"]
      split("", field)
    }
    /^====/ { done(); next }
    { name = $1; sub(/^[^ ]+ +/, ""); sub(/ +$/, ""); field[name] = $0 }
    END { done() }'
}

# qdel always sends KILL. A job that is already gone or being deleted is not an error. Whether users may have a job
# forgotten whose host does not end it is up to the site (ENABLE_FORCED_QDEL).
backend_cancel() { # $1 how, $2 tags
  bounded 30 qstat -u "$SGE_USER" -s prs -xml >|"$T/qstat" || return
  how=$1
  # shellcheck disable=SC2046 # ids have no blanks
  set -- $(listed | elements | LC_ALL=C awk -v "tags=$2" '
    BEGIN { n = split(tags, list, " "); for (i = 1; i <= n; i++) ours[list[i]] = 1 }
    $1 in ours { print $2 }')
  [ $# -gt 0 ] || return 0
  [ "$how" != FORCE ] || bounded 60 qdel -f "$@" >/dev/null 2>&1 </dev/null
  message=$(bounded 60 qdel "$@" 2>&1 </dev/null) && return
  case $message in *'does not exist'*) return 0 ;; esac
  say "$message" >&2
  return 1
}

# Free slots, and all slots, of the queues that take jobs; a host in two queues counts in both.
backend_capacity() {
  bounded 20 qstat -g c | LC_ALL=C awk '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i - NF; next }
    NF > 5 { free += $(NF + column["AVAIL"]); all += $(NF + column["TOTAL"]) - $NF }
    END { if (NR) printf "%d %d\n", free, all }'
}
backend_accounting() {
  [ -r "${SGE_ROOT:-/var/lib/gridengine}/${SGE_CELL:-default}/common/accounting" ] && say 'qacct answers'
}
backend_queues() { bounded 20 qconf -sql; }
backend_has() { bounded 20 qconf -sql | grep -Fx "${1%%@*}"; }
