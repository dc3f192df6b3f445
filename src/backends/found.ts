import type { Backend } from './contract.ts';
import { BACKENDS } from './registry.ts';

/** A batch system whose commands a machine has. */
export interface FoundBatchSystem {
  readonly batch: string;
  /** The command's own description of itself, one line. */
  readonly message: string;
  /** Whether its controller answered. */
  readonly answers: boolean;
}

/**
 * Finds which batch systems' commands the machine has, and whether each controller answers: prints `found NAME STATUS
 * WORDS` for each, between two marker lines that no log-in script prints. Which system's `qsub` is installed is found
 * out only once: `$qsub` and `$qsub_says`. Needs only a POSIX shell.
 */
export const LOOK = `
PATH=$PATH:/opt/pbs/bin:/opt/slurm/bin:/usr/local/slurm/bin:/opt/torque/bin
bounded() { if command -v timeout >/dev/null 2>&1; then timeout "$@"; else shift && "$@"; fi; }
look() { # $1 name, $2 words, then a question to its controller
  name=$1 words=$(printf %s "$2" | head -n 1)
  shift 2
  bounded 20 "$@" >/dev/null 2>&1 </dev/null
  echo "found $name $? $words"
}
echo gryphus-found
qsub= qsub_says=
if command -v qsub >/dev/null 2>&1; then
  qsub_says=$(bounded 20 qsub --version 2>&1 </dev/null)
  case $qsub_says in
    *pbs_version* | *PBSPro* | *OpenPBS*) qsub=pbs ;;
    *[Vv]ersion:*) qsub=torque ;;
    *)
      qsub_says=$(bounded 20 qstat -help 2>&1 </dev/null | head -n 1)
      case $qsub_says in
        *GE*[0-9]* | *'Grid Engine'*) qsub=sge ;;
        *) command -v sbatch >/dev/null 2>&1 || qsub=torque qsub_says=$(command -v qsub) ;;
      esac
      ;;
  esac
fi
${Object.values<Backend>(BACKENDS)
  .flatMap(({ detect }) => detect ?? [])
  .join('\n')}
echo gryphus-end`;

/** `undefined` if the answer is cut short. The first entry is the one to use; an empty list means plain processes. */
export function readFound(answer: string): readonly FoundBatchSystem[] | undefined {
  const [, body] = /^gryphus-found\n((?:found .*\n)*)gryphus-end$/m.exec(answer) ?? [];
  if (body === undefined) return undefined;
  const all = body.split('\n').flatMap((line): FoundBatchSystem[] => {
    const [, batch = '', status = '', message = ''] = /^found (\S+) (\d+) ?(.*)$/.exec(line) ?? [];
    return batch === '' ? [] : [{ batch, message: message.trim(), answers: status === '0' }];
  });
  return [...all.filter((one) => one.answers), ...all.filter((one) => !one.answers)];
}
