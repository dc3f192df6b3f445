export function htcondorPlace(): string;
export function needHtcondor(): boolean;
