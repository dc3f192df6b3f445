export function criuPlace(): string;
export function needCriu(): boolean;
