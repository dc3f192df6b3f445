/** In the environment of this process from its start; taken out of it, as what we start is not concerned. */
export const HANG_UP_VARIABLE = 'GRYPHUS_HANG_UP';

/**
 * Lines of a shell that starts Node: they tell it that hang-ups are ignored (`nohup`, `trap '' HUP`), which Node would forget. A shell
 * cannot catch a signal that was ignored when it began.
 */
export const TELL_OF_HANG_UP: readonly string[] = [
  `${HANG_UP_VARIABLE}=ignored; export ${HANG_UP_VARIABLE}`,
  `trap 'unset ${HANG_UP_VARIABLE}' HUP; kill -HUP $$; trap - HUP`,
];

/** JavaScript for the first line of a program: from then on it outlives a hang-up, if it was started so. */
export const IGNORE_HANG_UP = `if (process.env.${HANG_UP_VARIABLE}) process.on('SIGHUP', () => undefined);`;

const ignored = process.env[HANG_UP_VARIABLE] !== undefined;
delete process.env[HANG_UP_VARIABLE];

/** Whether whoever started this process wants it to go on when its terminal is closed (`IGNORE_HANG_UP` has seen to it). */
export function ignoresHangUp(): boolean {
  return ignored;
}
