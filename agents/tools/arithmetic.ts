/**
 * Arithmetic in words of a formula: numbers, + - * / ^ %, brackets, and a few functions. The evaluator is mathjs with
 * nothing in it that could assign, define, import or loop.
 */

import type { FactoryFunctionMap } from 'mathjs';

/** Longer ones are no sums that somebody says on the telephone. */
const EXPRESSION_MAX_CHARS = 200;
/** Digits that a double holds for sure: 0.1 + 0.2 is 0.3. */
const DIGITS = 14;

const FUNCTIONS = [
  'add',
  'subtract',
  'multiply',
  'divide',
  'pow',
  'mod',
  'unaryMinus',
  'unaryPlus',
  'sqrt',
  'abs',
  'round',
  'floor',
  'ceil',
  'min',
  'max',
  'pi',
  'e',
  'parse',
] as const;
const NODES = new Set(['ConstantNode', 'OperatorNode', 'ParenthesisNode', 'FunctionNode', 'SymbolNode']);

/** Rejects with what is wrong, in words for the caller. */
export async function evaluate(expression: string): Promise<number> {
  if (expression.trim() === '') throw new Error('there is nothing to calculate');
  if (expression.length > EXPRESSION_MAX_CHARS) throw new Error('the expression is too long');
  const { parse } = await arithmetic();
  const root = parse(expression);
  root.traverse((node) => {
    if (!NODES.has(node.type)) throw new Error('only numbers, operators and functions can be calculated');
  });
  const value: unknown = root.evaluate();
  if (typeof value !== 'number') throw new Error('the result is no number');
  if (!Number.isFinite(value)) throw new Error('the result is not a finite number');
  return Number(value.toPrecision(DIGITS));
}

/** Loaded when it is first needed, which is in a worker: it takes most of a second, and agents are loaded at the start. */
async function arithmetic() {
  const library = await import('mathjs/number');
  const parts = FUNCTIONS.map((name) => [`${name}Dependencies`, library[`${name}Dependencies`]]);
  return library.create(Object.fromEntries(parts) as FactoryFunctionMap);
}
