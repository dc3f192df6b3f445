import { unixSeconds } from '../times.ts';

/**
 * A line about a node (Pegasus' jobstate log; manual, "Machine-readable event history"). `tag`: the job's site, or `-`.
 */
export function jobstateLine(
  at: number,
  node: string,
  word: string,
  id: string,
  tag: string,
  sequence: number,
): string {
  return `${unixSeconds(at)} ${node} ${word} ${id} ${tag} - ${sequence}\n`;
}

/** A line about the DAG manager itself. */
export function internalLine(at: number, what: string): string {
  return `${unixSeconds(at)} INTERNAL *** ${what} ***\n`;
}

/** The highest sequence number in a jobstate log; a rescue run continues after it. */
export function lastSequence(text: string): number {
  let most = 0;
  for (const line of text.split('\n')) {
    const words = line.split(' ');
    if (words.length === 7 && words[1] !== 'INTERNAL') most = Math.max(most, Number(words[6]) || 0);
  }
  return most;
}

/** The tag of a node's jobs: the value of the command that `+job_tag_name` names, or else of `+pegasus_site`. */
export function jobTag(description: string): string {
  const value = (name: string): string | undefined => {
    const line = description.split('\n').find((l) => l.trim().toLowerCase().startsWith(name.toLowerCase()));
    const found = line === undefined ? undefined : /^\s*\S+\s*=\s*"?([^"]*?)"?\s*$/.exec(line);
    return found?.[1] === '' ? undefined : found?.[1];
  };
  return value(value('+job_tag_name') ?? '+pegasus_site') ?? '-';
}
