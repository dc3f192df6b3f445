export function placeOf(name: string): string;
export function mirror(): string;
