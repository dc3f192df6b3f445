import { ClassAd } from '../ad.ts';
import { toBytes } from '../bytes.ts';
import type { CompareOp } from '../expr.ts';
import { arithmetic, compare, promote, relation } from '../operators.ts';
import { ERROR, isNumeric, ListValue, Real, type Value } from '../values.ts';
import { type Each, type FunctionTable, overLists, pure } from './definition.ts';

function member(identical: boolean) {
  return overLists(2, 2, (each, wanted, list) => {
    if (list === undefined || (!identical && wanted === undefined)) return undefined;
    if (!(list instanceof ListValue) || wanted instanceof ListValue || wanted instanceof ClassAd) return ERROR;
    if (!identical && wanted === ERROR) return ERROR;
    for (let at = 0; at < list.items.length; at += 1) {
      if (relation(identical ? '=?=' : '==', each(list, at), wanted) === true) return true;
    }
    return false;
  });
}

function size(value: Value): Value {
  if (value === undefined) return undefined;
  if (value instanceof ListValue) return value.items.length;
  if (value instanceof ClassAd) return value.size;
  return typeof value === 'string' ? toBytes(value).length : ERROR;
}

/** Reduces the numbers of a list, skipping undefined items; ERROR if an item is not a number. */
function foldNumbers(
  each: Each,
  list: Value,
  step: (soFar: Value, item: Value) => Value,
  empty: Value,
): [Value, number] {
  if (!(list instanceof ListValue)) return [ERROR, 0];
  let result = empty;
  let count = 0;
  for (let at = 0; at < list.items.length; at += 1) {
    const value = each(list, at);
    if (value === undefined) continue;
    if (!isNumeric(value)) return [ERROR, 0];
    result = count === 0 ? value : step(result, value);
    count += 1;
  }
  return [result, count];
}

function sum(average: boolean) {
  return overLists(1, 1, (each, list) => {
    if (list === undefined) return undefined;
    const [total, count] = foldNumbers(each, list, (soFar, item) => arithmetic('+', soFar, item), 0);
    return average && count > 0 ? arithmetic('/', total, new Real(count)) : total;
  });
}

/**
 * The comparison converts integers to reals and booleans to integers, and the result stays converted: min({1, 2.5}) is
 * 1.0.
 */
function extreme(op: '<' | '>') {
  return overLists(1, 1, (each, list) => {
    if (list === undefined) return undefined;
    const better = (soFar: Value, item: Value): Value => {
      if (!isNumeric(soFar) || !isNumeric(item)) return ERROR;
      const [kept, next] = promote(soFar, item);
      return compare(op, next, kept) === true ? next : kept;
    };
    return foldNumbers(each, list, better, undefined)[0];
  });
}

const COMPARISONS: ReadonlyMap<string, CompareOp> = new Map([
  ['<', '<'],
  ['<=', '<='],
  ['!=', '!='],
  ['==', '=='],
  ['>', '>'],
  ['>=', '>='],
  ['is', '=?='],
  ['isnt', '=!='],
]);

function compareAll(all: boolean) {
  return overLists(3, 3, (each, operator, list, wanted) => {
    if (operator === undefined) return undefined;
    const op = typeof operator === 'string' ? COMPARISONS.get(operator) : undefined;
    if (op === undefined) return ERROR;
    if (list === undefined) return undefined;
    if (!(list instanceof ListValue)) return ERROR;
    for (let at = 0; at < list.items.length; at += 1) {
      const result = relation(op, each(list, at), wanted);
      // An undefined comparison makes anyCompare() false too, whatever follows.
      if (result === undefined) return false;
      if (typeof result !== 'boolean') return ERROR;
      if (result !== all) return result;
    }
    return all;
  });
}

export const LISTS: FunctionTable = [
  ['member', member(false)],
  ['identicalMember', member(true)],
  ['size', pure(1, 1, size)],
  ['sum', sum(false)],
  ['avg', sum(true)],
  ['min', extreme('<')],
  ['max', extreme('>')],
  ['anyCompare', compareAll(false)],
  ['allCompare', compareAll(true)],
];
