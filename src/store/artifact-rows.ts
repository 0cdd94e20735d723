/**
 * Artifacts in the database: bytes by owner, name and version. They stand beside the events, so that a version and the event
 * that tells of it are on the same disk, are deleted together, and are seen by every server.
 */
import { ARTIFACT_LIST_MAX } from '../limits.js';
import type { ArtifactTable, Connection } from './schema.js';
import { NOBODY, ownerOfArtifact } from './state-scopes.js';
import type { Artifact, ArtifactSummary, Page, PageRequest, SessionKey } from './store.js';

export interface NewArtifact {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly mimeType: string;
  readonly nowMs: number;
}

/** Two that take the same version meet at the table's key, and the later one tries again. */
export async function insertArtifact(
  trx: Connection,
  session: SessionKey,
  { name, bytes, mimeType, nowMs }: NewArtifact,
): Promise<number> {
  const { appName, userId, sessionId } = ownerOfArtifact(session, name);
  const { latest } = await trx
    .selectFrom('artifact')
    .select((eb) => eb.fn.max<number | null>('version').as('latest'))
    .where('app_name', '=', appName)
    .where('user_id', '=', userId)
    .where('session_id', '=', sessionId)
    .where('name', '=', name)
    .executeTakeFirstOrThrow();
  const version = latest === null ? 0 : latest + 1;
  await trx
    .insertInto('artifact')
    .values({
      app_name: appName,
      user_id: userId,
      session_id: sessionId,
      name,
      version,
      mime_type: mimeType,
      created_at_ms: nowMs,
      size: bytes.byteLength,
      bytes,
    })
    .execute();
  return version;
}

export async function findArtifact(
  connection: Connection,
  session: SessionKey,
  { name, version }: { readonly name: string; readonly version: number | undefined },
): Promise<Artifact | undefined> {
  const { appName, userId, sessionId } = ownerOfArtifact(session, name);
  let query = connection
    .selectFrom('artifact')
    .select(['version', 'mime_type', 'created_at_ms', 'bytes'])
    .where('app_name', '=', appName)
    .where('user_id', '=', userId)
    .where('session_id', '=', sessionId)
    .where('name', '=', name);
  if (version !== undefined) query = query.where('version', '=', version);
  const row = await query.orderBy('version', 'desc').limit(1).executeTakeFirst();
  return row && artifactOf(row);
}

export function artifactOf(
  row: Pick<ArtifactTable, 'version' | 'mime_type' | 'created_at_ms' | 'bytes'>,
): Artifact {
  const { version, mime_type: mimeType, created_at_ms: createdAtMs } = row;
  return { version, mimeType, bytes: new Uint8Array(row.bytes), createdAtMs };
}

/** The session's own and its user's, by name. Versions are never deleted singly, so the newest tells their number. */
export async function pageOfArtifacts(
  connection: Connection,
  { appName, userId, id }: SessionKey,
  { after, limit = ARTIFACT_LIST_MAX }: PageRequest<string>,
): Promise<Page<ArtifactSummary, string>> {
  const count = Math.min(limit, ARTIFACT_LIST_MAX);
  let newest = connection
    .selectFrom('artifact')
    .select((eb) => ['session_id', 'name', eb.fn.max('version').as('version')])
    .where('app_name', '=', appName)
    .where('user_id', '=', userId)
    .where('session_id', 'in', [id, NOBODY]);
  if (after !== undefined) newest = newest.where('name', '>', after);
  const rows = await connection
    .selectFrom('artifact')
    .innerJoin(
      newest
        .groupBy(['session_id', 'name'])
        .orderBy('name')
        .limit(count + 1)
        .as('newest'),
      (join) =>
        join
          .onRef('artifact.session_id', '=', 'newest.session_id')
          .onRef('artifact.name', '=', 'newest.name')
          .onRef('artifact.version', '=', 'newest.version'),
    )
    .select(['artifact.name', 'artifact.version', 'artifact.mime_type', 'artifact.size'])
    .where('artifact.app_name', '=', appName)
    .where('artifact.user_id', '=', userId)
    .orderBy('artifact.name')
    .execute();
  const items = rows.slice(0, count).map(({ name, version, mime_type: mimeType, size }) => ({
    name,
    latest: { version, mimeType, bytes: size },
    versions: version + 1,
  }));
  const last = rows.length > count ? items.at(-1)?.name : undefined;
  return { items, ...(last !== undefined && { next: last }) };
}
