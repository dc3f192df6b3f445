#!/bin/sh
# Gryphus: what Grid Engine runs. It signals the whole process group, so nothing is forwarded. A status of 99 would
# requeue the job, 100 would put it into an error state, and one above 128 would look like a kill. A program must not
# decide that; the exit record says how it ended.
# $4: the submission, or `array`; $3 is then the group.
trap : HUP INT QUIT TERM USR1 USR2 XCPU
if [ "$4" = array ]; then
  /bin/sh "$1" "$2" "$3" "$SGE_TASK_ID" '' "$JOB_ID.$SGE_TASK_ID"
else
  /bin/sh "$1" "$2" "$3" "$4" '' "${JOB_ID:--}"
fi
status=$?
case $status in
  99 | 100 | 12[89] | 1[3-9]? | 2??) exit 1 ;;
esac
exit "$status"
