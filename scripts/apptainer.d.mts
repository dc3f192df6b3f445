export function apptainerPlace(): string;
export function needApptainer(): string | undefined;
