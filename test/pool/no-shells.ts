const nothing = (): void => undefined;

/** For a central manager whose workers open no shells. */
export const NO_SHELLS = { hear: nothing, away: nothing, startAtNode: nothing, passFromNode: nothing };
