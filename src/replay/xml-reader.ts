/**
 * A strict reader for the small XML documents that webhooks answer with. It accepts only what is well-formed
 * (one root, matched tags, quoted attributes, known entities; no DOCTYPE) and throws a SyntaxError otherwise, because
 * the carrier refuses such a document too. It knows nothing of TwiML.
 */

export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  /** All text directly inside this element, entities decoded. */
  readonly text: string;
}

interface OpenElement {
  name: string;
  attributes: Record<string, string>;
  children: OpenElement[];
  text: string;
}

/** Deepest nesting; TwiML needs four. */
const DEPTH_MAX = 32;
const NAME = '[A-Za-z_][\\w.:-]*';
const ATTRIBUTE = `(${NAME})\\s*=\\s*(?:"([^<"]*)"|'([^<']*)')`;
const ATTRIBUTES = new RegExp(`\\s+${ATTRIBUTE}`, 'y');
/** In order: comment, CDATA, processing instruction or declaration, end tag, start of a tag, text. */
const TOKEN = new RegExp(
  `<!--((?:(?!--)[^])*)-->|<!\\[CDATA\\[([^]*?)\\]\\]>|<\\?([^]*?)\\?>|</(${NAME})\\s*>|<(${NAME})|([^<]+)`,
  'y',
);
const TAG_END = /\s*(\/?)>/y;
const ENTITY = /&(?:#x([0-9A-Fa-f]+)|#(\d+)|(\w+));|&/g;
const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decodeEntities(text: string): string {
  return text.replace(ENTITY, (_whole, hex?: string, decimal?: string, name?: string) => {
    if (name !== undefined) {
      const named = NAMED[name];
      if (named !== undefined) return named;
      throw new SyntaxError(`unknown entity &${name};`);
    }
    const code = hex === undefined ? Number.parseInt(decimal ?? '', 10) : Number.parseInt(hex, 16);
    if (!(code > 0 && code <= 0x10_ff_ff)) throw new SyntaxError('a bare & or an impossible character');
    return String.fromCodePoint(code);
  });
}

function readTag(
  source: string,
  from: number,
  name: string,
): { element: OpenElement; end: number; closed: boolean } {
  const attributes: Record<string, string> = {};
  let at = from;
  for (;;) {
    ATTRIBUTES.lastIndex = at;
    const match = ATTRIBUTES.exec(source);
    if (match === null) break;
    const key = match[1] ?? '';
    if (Object.hasOwn(attributes, key)) throw new SyntaxError(`<${name}> has ${key} twice`);
    attributes[key] = decodeEntities(match[2] ?? match[3] ?? '');
    at = ATTRIBUTES.lastIndex;
  }
  TAG_END.lastIndex = at;
  const end = TAG_END.exec(source);
  if (end === null) throw new SyntaxError(`<${name}> is not a well-formed tag`);
  return {
    element: { name, attributes, children: [], text: '' },
    end: TAG_END.lastIndex,
    closed: end[1] === '/',
  };
}

/** Reads one document and returns its root. Throws a SyntaxError that says what is wrong. */
export function readXml(source: string): XmlElement {
  const top: OpenElement = { name: '', attributes: {}, children: [], text: '' };
  const open: OpenElement[] = [top];
  let at = source.startsWith('\uFEFF') ? 1 : 0;
  while (at < source.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(source);
    if (match === null) throw new SyntaxError(`unreadable markup at character ${at}`);
    at = TOKEN.lastIndex;
    const parent = open.at(-1) ?? top;
    const [, , cdata, , endName, startName, text] = match;
    if (endName !== undefined) {
      if (endName !== parent.name) throw new SyntaxError(`</${endName}> where </${parent.name}> was due`);
      open.pop();
    } else if (startName !== undefined) {
      const tag = readTag(source, at, startName);
      at = tag.end;
      parent.children.push(tag.element);
      if (!tag.closed && open.push(tag.element) > DEPTH_MAX) throw new SyntaxError('nested too deeply');
    } else {
      parent.text += cdata ?? (text === undefined ? '' : decodeEntities(text));
    }
  }
  if (open.length > 1) throw new SyntaxError(`<${open.at(-1)?.name ?? ''}> is never closed`);
  const [root] = top.children;
  if (root === undefined || top.children.length > 1)
    throw new SyntaxError('there is not exactly one root element');
  if (top.text.trim() !== '') throw new SyntaxError('there is text outside the root element');
  return root;
}
