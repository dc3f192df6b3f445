/** Escape sequences of terminals: control sequences, titles, and single characters. */
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
/** Controls but tab and line end, and what turns the direction of text or hides in it. */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** Text of a job or a site as what it is: characters that would act are shown by their numbers. */
export function plain(text: string, most = 2000): string {
  const cut = text.length > most ? text.slice(0, most) : text;
  const shown = cut
    .replaceAll(ANSI, '')
    .replaceAll('\r\n', '\n')
    .replaceAll(CONTROL, (one) => `⟨${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
  return cut === text ? shown : `${shown} … (${text.length - most} more characters)`;
}

/** The same for an output of many lines, each of which is cut. */
export function plainLines(text: string, mostInLine = 2000): string {
  return text
    .split('\n')
    .map((line) => plain(line, mostInLine))
    .join('\n');
}
