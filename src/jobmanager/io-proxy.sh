# Gryphus: the proxy through which a job asks its home while it runs (`want_io_proxy`). Part of wrapper.sh, in the attempt's
# directory.

# Returns when the job can use it. What the batch system says to all processes of the job is not for the proxy.
open_proxy() {
  rm -f over work/.chirp.config
  keep_proxy </dev/null >/dev/null 2>"$NOTES/proxy" &
  PROXY=$!
  while [ ! -s work/.chirp.config ]; do
    kill -0 "$PROXY" 2>/dev/null || cannot "Its proxy (want_io_proxy) could not be started: $(tail -n 1 "$NOTES/proxy")"
    sleep 0.05 2>/dev/null || sleep 1
  done
}
# One that is killed is started again: the job finds its port and cookie in the same file.
keep_proxy() {
  trap '' TERM HUP INT QUIT USR1 USR2 XCPU
  while [ ! -e over ]; do
    "$IO_NODE" "$IO_PROGRAM" "$ROOT" "$KEY" "$PID"
    [ "$?" -gt 128 ] || break
  done
}

# Returns when home knows what the job said, or at the next signal: the batch system's patience is over then.
close_proxy() {
  # Its processor time is not the job's.
  times >"$NOTES/times"
  # shellcheck disable=SC2034 # for the wrapper
  TIMED=1
  : >over
  told=${got-}
  while kill -0 "$PROXY" 2>/dev/null; do
    wait "$PROXY"
    [ "${got-}" = "$told" ] || break
  done
} 2>/dev/null
