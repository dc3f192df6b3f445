# Gryphus: what OpenPBS, PBS Pro and Torque share. Sourced by pbs.sh and torque.sh, and so by jobmanager.sh.
# shellcheck source=/dev/null
. "$BIN/job-script.sh"
# shellcheck disable=SC2034 # jobmanager.sh reads it
QUEUE_HEADING=TAG
PARALLEL_SUBMITS=${GRYPHUS_SUBMITS:-8}

backend_start() { :; }
wait_for_event() { tick; }
backend_submit_all() { in_parallel "$1" "$PARALLEL_SUBMITS" submit_one; }

# Reduces `qstat -f` to one line for each of our jobs and array elements: TAG ID
# STATE|SUBSTATE|EXIT|HOST|WALLTIME|COMMENT. A waiting element does not show a hold, nor always a reason; its array,
# listed before it, does.
jobs_of() { # $1 file, $2 prefix of the names
  LC_ALL=C awk -v "prefix=$2" '
    function done() {
      tag = f["Job_Name"]
      state = f["job_state"]
      if (id ~ /\[\]/) {
        array = id
        sub(/\[.*/, "", array)
        array_state = state
        array_comment = f["comment"]
      } else if (index(tag, prefix) == 1) {
        if (match(id, /\[[0-9]+\]/)) {
          # Torque appends the index to the name.
          sub("-" substr(id, RSTART + 1, RLENGTH - 2) "$", "", tag)
          tag = tag substr(id, RSTART, RLENGTH)
          if (state == "Q" && substr(id, 1, RSTART - 1) == array) {
            if (array_state == "H") state = "H"
            if (f["comment"] == "") f["comment"] = array_comment
          }
        }
        # Held only by the limit of its array (qsub -t 1-9%2), so it counts as waiting.
        if (state == "H" && f["Hold_Types"] == "l") state = "Q"
        print tag " " id " " state "|" f["substate"] "|" (("Exit_status" in f) ? f["Exit_status"] : f["exit_status"]) "|" f["exec_host"] "|" f["Resource_List.walltime"] "|" f["comment"]
      }
      split("", f)
      name = ""
    }
    /^Job Id:/ { done(); id = $3; next }
    # Long values continue on lines that begin with a tab; the Torque wrappers of Slurm begin every line with one.
    /^\t/ && !/^\t[A-Za-z_.]+ = / { sub(/^\t/, ""); f[name] = f[name] $0; next }
    / = / { sub(/^[ \t]+/, ""); name = $1; sub(/^[^ ]+ = /, ""); f[name] = $0 }
    END { done() }' "$1"
}

# qdel stops at the first unknown id and only its last status counts, so each job gets its own qdel. A job that is
# already exiting is left alone; FORCE is for jobs that do not end, or whose node does not answer.
delete_jobs() { # $1 how, $2 tags, then qdel's options for forgetting a job; the list of jobs is in $T/qstat
  failed=0 how=$1 tags=$2 most=60 left=120
  shift 2
  for id in $(jobs_of "$T/qstat" gryphus. | elements | LC_ALL=C awk -v "tags=$tags" -v "how=$how" '
    BEGIN { n = split(tags, list, " "); for (i = 1; i <= n; i++) ours[list[i]] = 1 }
    $1 in ours { split($3, part, "|"); if (part[1] !~ (how == "FORCE" ? "[CFX]" : "[CFXE]")) print $2 }'); do
    [ "$left" -gt 0 ] || { failed=1 && break; }
    if [ "$how" = FORCE ]; then
      bounded "$most" qdel "$@" "$id" >/dev/null 2>&1 </dev/null && continue
      is_hung "$?" && continue
    fi
    message=$(bounded "$most" qdel "$id" 2>&1 </dev/null) && continue
    status=$?
    is_hung "$status" || gone_or_going "$status" || {
      failed=1
      say "$message" >&2
    }
  done
  return "$failed"
}
# If a node is frozen but not known to be down, the server makes each qdel wait, although it has received the request.
is_hung() { # $1 status: waits the full time only once
  case $1 in 124 | 137) ;; *) return 1 ;; esac
  failed=1 left=$((left - most)) most=3
  say 'qdel does not answer' >&2
}
