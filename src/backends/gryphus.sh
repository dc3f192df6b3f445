# Gryphus: the commands of another Gryphus, which read and answer as HTCondor's. The shell half of gryphus.ts, part of
# jobmanager.sh.
# shellcheck source=/dev/null
. "$BIN/condor.sh"
# shellcheck disable=SC2034 # condor.sh reads them
SUBMIT='gryphus submit' QUEUE='gryphus q' REMOVE='gryphus rm' HISTORY='gryphus history'
# Each command is a process of its own that is not small.
PARALLEL_SUBMITS=${GRYPHUS_SUBMITS:-2}
# TERM reaches every process of a job there; what else it is sent goes to its first.
# shellcheck disable=SC2034
FORWARDED='HUP INT QUIT USR1 USR2 XCPU'
# shellcheck disable=SC2034
REMOVED_FOR='ifThenElse(LastHoldReasonCode =?= undefined && HoldReasonCode =?= undefined, RemoveReason, strcat("held ", HoldReasonCode ?: LastHoldReasonCode, " ", HoldReason ?: LastHoldReason))'

backend_version() { bounded 20 gryphus --version; }
# Of its sites that say so.
backend_capacity() {
  bounded 20 gryphus status -af FreeCpus TotalCpus >|"$T/status" </dev/null || return
  LC_ALL=C awk '$2 ~ /^[0-9]+$/ { free += $1; all += $2 } END { if (all) printf "%d %d\n", free, all }' "$T/status"
}
