# Gryphus: deletes what is no longer needed, and reports what there is. Part of jobmanager.sh.

# $2, $3: how many seconds a prepared attempt waits for its commit, and unused content stays in the cache; $4: the most
# KB of unused content to keep, or `-`. Answers `swept KEY`; `uncached COUNT`.
do_sweep() {
  body "$1" >/dev/null
  set +f
  set -- "$2" "$3" "$4" trash/* tmp/*
  set -f
  ttl=$1 keep=$2 most=$3
  shift 3
  for dir; do
    case $dir in
      "$T" | */\*) continue ;;
      tmp/*)
        # Keep it unless it belongs to this host and its JobManager is dead.
        host='' pid=0
        [ -f "$dir/pid" ] && read -r host pid <"$dir/pid"
        [ -z "$host" ] || { [ "$host" = "$HOST" ] && ! kill -0 "$pid" 2>/dev/null; } || continue
        ;;
    esac
    rm -rf "$dir"
  done
  sweep_uncommitted "$ttl"
  sweep_groups
  sweep_cache "$keep" "$most"
  sweep_proxies
}

sweep_uncommitted() { # $1 seconds
  waiting=
  set +f
  for dir in jobs/*; do
    [ -f "$dir/spec" ] && [ ! -e "$dir/intent.1" ] && waiting="$waiting $dir/spec"
  done
  set -f
  [ -n "$waiting" ] || return 0
  # shellcheck disable=SC2013,SC2086 # keys have no blanks
  for key in $(LC_ALL=C awk -v "before=$(($(date +%s) - $1))" 'FNR == 1 && $1 == "prepared" && $2 + 0 < before { split(FILENAME, part, "/"); print part[2] }' $waiting); do
    # A simultaneous commit is safe: its wrapper meets the lock and leaves, and the attempt is prepared anew.
    fence "$key" 1 swept && rm -rf "jobs/$key" && say "swept $key"
  done
}

# Deletes content that was present but unused at the last such sweep, at least $1 seconds ago. Of the content unused at
# the last sweep of any age, keeps at most $2 KB (`-`: any amount), deleting the oldest first.
sweep_cache() {
  [ "$2" = - ] || sweep_surplus "$2"
  last=0
  [ -f cache-swept ] && read -r last <cache-swept
  [ "$(date +%s)" -ge $((last + $1)) ] || return 0
  if [ "$last" -gt 0 ]; then
    # Nothing may be deleted unless it is certain what is in use.
    used=$(used_content) || return 0
    count=0
    # shellcheck disable=SC2044 # hashes have no blanks
    for file in $(find cache -type f ! -newer cache-swept 2>/dev/null); do
      sha=${file#cache/} && sha=${sha%%.*}
      case " $used" in *" $sha "*) ;; *) rm -f "$file" && count=$((count + 1)) ;; esac
    done
    say "uncached $count"
  fi
  date +%s >|cache-swept
}

sweep_surplus() { # $1 KB
  [ "$(du -sk cache | LC_ALL=C awk '{ print $1 }')" -gt "$1" ] || return 0
  used=$(used_content) || return 0
  left=$1 count=0
  # Content from the last hour may be for a job whose spec is not written yet.
  # shellcheck disable=SC2012,SC2044 # hashes have no odd bytes
  for file in $(find cache -type f -mmin +60 -exec ls -td {} + 2>/dev/null); do
    sha=${file#cache/} && sha=${sha%%.*}
    case " $used" in *" $sha "*) continue ;; esac
    kb=$(du -k "$file" | LC_ALL=C awk '{ print $1 }')
    if [ "$kb" -le "$left" ]; then left=$((left - kb)); else left=0 && rm -f "$file" && count=$((count + 1)); fi
  done
  say "uncached $count"
}

# Prints the content that attempts refer to; fails if that is uncertain.
used_content() {
  set +f
  set -- jobs/*/spec
  set -f
  [ -e "$1" ] || return 0
  find jobs -name spec -type f -exec awk '$1 == "blob" { if (!($2 in seen)) printf "%s ", $2; seen[$2] = 1 }' {} +
}

# Lists everything that the site holds under our name: `job` lines as in a poll, `queued TAG ID REST`, `content COUNT
# KB`; and for other agents, whose directories lie next to ours, `other AGENT ATTEMPTS ENDED OLDEST NEWEST` (prepared
# when).
do_audit() {
  body "$1" >/dev/null
  list_jobs
  case $ROOT in
    # Other agents are listed only from the place of the agent without an identity, so that each appears once.
    */+*/"$AGENT") ;;
    *) list_others ;;
  esac
  answer=$(backend_queue 2>|"$T/why" </dev/null)
  status=$?
  if [ "$status" -eq 0 ]; then
    printf '%s\n' "$answer" | elements | LC_ALL=C awk -v "heading=$QUEUE_HEADING" '
      NR == 1 { if ($1 != heading) exit 3; next }
      index($1, "gryphus.") == 1 { print "queued " $0 }'
    status=$?
  fi
  say "queue $status $(encoded <"$T/why")"
  say "content $(find cache -type f | wc -l | tr -d ' ') $(du -sk cache | LC_ALL=C awk '{ print $1 }')"
}

# What a lost queue knew about attempts, from what stands here. Answers for each of the keys in the body `recalled KEY
# PREPARED` (Unix seconds), then `ad LINE` for each line of the job's ad, and `env NAME=VALUE` (in \0ooo).
do_recall() {
  files=
  for key in $(body "$1"); do
    files="$files jobs/$key/spec"
    [ ! -f "jobs/$key/work/.job.ad" ] || files="$files jobs/$key/work/.job.ad"
    [ ! -f "jobs/$key/staged/.job.ad" ] || files="$files jobs/$key/staged/.job.ad"
  done
  [ -n "$files" ] || return 0
  # shellcheck disable=SC2086 # keys have no blanks
  LC_ALL=C awk "$ENCODE"'
    FNR == 1 { split(FILENAME, part, "/"); ad = FILENAME ~ /\.job\.ad$/ }
    FNR == 1 && !ad { print "recalled " part[2] " " $2 + 0 }
    ad { print "ad " encode($0); next }
    /^env / { print }' $files 2>/dev/null
}

list_others() {
  set +f
  set -- ../*/jobs ../+*/*/jobs
  set -f
  for dir; do
    whose=${dir%/jobs}
    whose=${whose##*/}
    case $whose in "$AGENT" | *[!A-Za-z0-9_-]* | '') continue ;; esac
    times=$(find "$dir" -name spec -type f -exec awk 'FNR == 1 && $1 == "prepared" { print $2 + 0 }' {} + 2>/dev/null | LC_ALL=C awk '
      NR == 1 || $1 < oldest { oldest = $1 }
      $1 > newest { newest = $1 }
      { count++ }
      END { if (count) printf "%d %.0f %.0f", count, oldest, newest }')
    [ -z "$times" ] || say "other $whose ${times%% *} $(find "$dir" -name exit -type f 2>/dev/null | wc -l | tr -d ' ') ${times#* }"
  done
}

# Steps of a check-up: answers `step NAME ok|bad WORDS`.
do_probe() { # body: the queue of jobs that name none, or nothing
  queue=$(body "$1")
  check home "$([ -w jobs ] && : 2>/dev/null >|"$T/try" && say "$ROOT is writable")"
  free=$(df -Pk . | LC_ALL=C awk 'NR == 2 { print int($4 / 1024) }')
  if [ "${free:-0}" -ge 10 ]; then check disk "$free MB free"; else check disk '' "${free:-0} MB free"; fi
  check exec "$(program_there)" "a program in $ROOT cannot be started"
  check awk "$(printf 'a\n' | LC_ALL=C awk '{ print $1 " ok" }' | grep 'a ok' >/dev/null && echo works)"
  check sha256 "$SHA"
  check bounded "${TIMEOUT:+commands that hang are ended}"
  if version=$(backend_version 2>&1 </dev/null); then check batch "$version"; else check batch '' "$version"; fi
  check queue "$(backend_queue 2>|"$T/why" </dev/null | LC_ALL=C awk -v "heading=$QUEUE_HEADING" 'NR == 1 && $1 != heading { bad = 1; exit } END { if (NR && !bad) print NR - 1 " jobs in it" }')" "$(tail -n 3 "$T/why")"
  check clock "$(date +%s)"
  ! command -v backend_capacity >/dev/null || check cores "$(backend_capacity 2>/dev/null </dev/null)"
  ! command -v backend_accounting >/dev/null || check accounting "$(backend_accounting 2>/dev/null </dev/null)"
  check launchers "$(launchers)"
  [ -n "$queue" ] && command -v backend_has >/dev/null || return 0
  there=$(backend_has "$queue" 2>|"$T/why" </dev/null)
  [ -n "$there" ] || queues_there >>"$T/why"
  why=$(tail -n 3 "$T/why")
  check named-queue "$there" "${why:-no queue $queue was found}"
}
# What starts the processes of a parallel job, with the kinds of MPI that srun serves, or whose launcher it is.
launchers() {
  for name in srun mpiexec mpirun mpiexec.hydra aprun jsrun; do
    command -v "$name" >/dev/null || continue
    case $name in srun) words=$(bounded 10 srun --mpi=list 2>&1 </dev/null) ;; *) words=$(bounded 10 "$name" --version 2>&1 </dev/null) ;; esac
    printf '%s\n' "$words" | LC_ALL=C awk -v "name=$name" '
      name == "srun" { sub(/^srun: */, ""); if (NF == 1 && $1 ~ /^[a-z]/ && $1 != "none") said = said (said == "" ? "" : ", ") $1 }
      /^HYDRA build/ { said = "MPICH" }
      said == "MPICH" && $1 == "Version:" { said = "MPICH " $2 }
      said == "" && match($0, /Open(MPI|RTE| MPI)\)? [0-9][0-9.]*/) { said = substr($0, RSTART, RLENGTH); sub(/^.* /, "Open MPI ", said) }
      said == "" && /Intel.*MPI/ { said = "Intel MPI" }
      END { printf "%s%s; ", name, said == "" ? "" : " (" said ")" }'
  done
}
# A directory mounted noexec accepts programs but does not run them.
program_there() {
  printf '#!/bin/sh\necho programs can be started\n' >|"$T/program" && chmod 700 "$T/program" && "$T/program" 2>/dev/null
  rm -f "$T/program"
}
check() { # $1 name, $2 what was found (empty: failed), $3 what was said instead
  if [ -n "$2" ]; then say "step $1 ok $(printf %s "$2" | encoded)"; else say "step $1 bad $(printf %s "${3-}" | encoded)"; fi
}
