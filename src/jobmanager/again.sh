# Gryphus: a run that the batch system made of a job that it had put back into its queue. Part of wrapper.sh.
# It takes over from the former run only where that one is known to be over: it left a record of how it was killed, or it was on
# this machine and nothing of it is alive. The name of the next run is made once: by us as a directory, or by the agent as a
# plain file, which believes the former run's end then.

take_over() {
  [ -d "run.lock.$N" ] && [ ! -e cancelled ] && [ "$BATCH_ID" != - ] || return
  IFS= read -r former <"run.lock.$N/owner" || return
  case $former in *" id=$BATCH_ID ."*) ;; *) return 1 ;; esac
  if [ "$(field host)" = "$HOST" ]; then was_killed || is_gone_here; else await_record && was_killed; fi || return
  RUN=$(field run)
  RUN=$((${RUN:-0} + 1))
  mkdir "run.lock.$N/next.$RUN" || return
  as_staged
} 2>/dev/null

field() { # $1 name, of the former run's owner
  case " $former " in *" $1="*) value=${former#*" $1="} && printf '%s' "${value%% *}" ;; esac
}

# A file system over the network may show late what another machine wrote.
await_record() {
  tries=0
  while set -- exit* && [ "$1" != exit ]; do
    tries=$((tries + 1))
    [ "$tries" -le 15 ] && sleep 1 || return
  done
}

# By its record. What ended by itself is the job's end, and is not run again.
was_killed() {
  IFS= read -r record <./exit || return
  case $record in '1 how='*' .') ;; *) return 1 ;; esac
  case $record in *' words='*) record=${record%%' words='*} ;; esac
  case $record in *' got='*TERM* | *' got='*XCPU*) return 0 ;; esac
  how=${record#1 how=} && how=${how%% *}
  case $how in
    signaled:*) return 0 ;;
    exited:*) [ "${how#exited:}" -gt 128 ] ;;
    *) return 1 ;;
  esac
}

is_gone_here() {
  [ ! -s exit ] && [ "$BOOT" != - ] || return
  [ "$(field boot)" = "$BOOT" ] || return 0
  pid=$(field pid)
  if read -r stat <"/proc/$pid/stat"; then
    # shellcheck disable=SC2086 # words of numbers
    set -- ${stat##*) }
    [ "${20}" != "$(field pstart)" ] || return
  fi
  ! grep -qsF "GRYPHUS_KEY=$KEY" /proc/[0-9]*/environ
}

# The directory as PREPARE left it: the inputs are placed again.
as_staged() {
  rm -f exit exit.new names stdout stderr "run.lock.$N/memory"
  rm -rf staged
  mkdir staged || return
  [ ! -f work/.job.ad ] || mv work/.job.ad staged/
  # Without the two lines that the former run put behind it.
  [ ! -f work/.machine.ad ] || sed -e '/^Machine = /d' -e '/^Name = /d' work/.machine.ad >staged/.machine.ad
  rm -rf work || { chmod -R u+rwX work && rm -rf work; } || return
  mv staged work
}
