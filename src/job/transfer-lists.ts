/** Comma-separated names, trimmed (HTCondor's manual, `transfer_input_files`). */
export function transferList(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/**
 * `name = newname ; name2 = newname2`, where `\;` and `\=` stand for the characters themselves (manual,
 * `transfer_output_remaps`).
 */
export function parseRemaps(text: string): ReadonlyMap<string, string> {
  const remaps = new Map<string, string>();
  for (const entry of splitEscaped(text, ';')) {
    const [from, ...to] = splitEscaped(entry, '=');
    if (from?.trim() && to.length > 0) remaps.set(unescape(from), unescape(to.join('=')));
  }
  return remaps;
}

/** The entries of `transfer_output_remaps` that rename nothing, because they have no `name = newname`. */
export function wrongRemaps(text: string): readonly string[] {
  const entries = splitEscaped(text, ';').map((entry) => entry.trim());
  return entries.filter((entry) => entry !== '' && !/\S/.test(splitEscaped(entry, '=').slice(1).join('')));
}

function splitEscaped(text: string, separator: string): string[] {
  const parts: string[] = [];
  let part = '';
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\' && i + 1 < text.length) part += `\\${text[++i]}`;
    else if (text[i] === separator) {
      parts.push(part);
      part = '';
    } else part += text[i];
  }
  return [...parts, part];
}

function unescape(text: string): string {
  return text.trim().replaceAll(/\\([;=\\])/g, '$1');
}
