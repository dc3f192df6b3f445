import { useEffect, useRef, useState } from 'preact/hooks';

/** Browsers draw nothing beyond some 17 million pixels: of a taller list, one pixel of the bar stands for more. */
const TALLEST = 8_000_000;
/** Without a movement for this long, the bar is put where it belongs; milliseconds. */
const REST_MS = 150;

interface Place {
  /** Of the scrolled element. */
  readonly top: number;
  /** Of the list, as if it were drawn whole. */
  readonly place: number;
}

export interface TallScroll extends Place {
  readonly drawn: number;
  readonly onScroll: (element: HTMLElement) => void;
}

/**
 * Scrolls a list of `full` pixels of which `view` are seen. In a list that is too tall to be drawn, movements of up to a screen
 * are as far as they look, so that wheel and keys miss no row, and longer ones go to the same part of the list.
 */
export function useTallScroll(full: number, view: number): TallScroll {
  const [now, setNow] = useState<Place>({ top: 0, place: 0 });
  const last = useRef(now);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const drawn = Math.min(full, TALLEST);
  const [range, whole] = [Math.max(1, drawn - view), Math.max(0, full - view)];
  const move = (to: Place): void => {
    last.current = to;
    setNow(to);
  };
  const onScroll = (element: HTMLElement): void => {
    const top = element.scrollTop;
    const step = top - last.current.top;
    const near = Math.abs(step) <= view && top > 0 && top < range - 1;
    const there = Math.min(1, top / range) * whole;
    const place = full > TALLEST && near ? Math.max(0, Math.min(whole, last.current.place + step)) : there;
    move({ top, place: full > TALLEST ? place : top });
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      if (full <= TALLEST || Math.abs(place - there) < 1) return;
      element.scrollTop = (place / whole) * range;
      move({ top: element.scrollTop, place });
    }, REST_MS);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return { ...now, drawn, onScroll };
}
