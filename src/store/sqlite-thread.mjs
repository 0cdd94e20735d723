/**
 * The thread in which SQLite works, so that waiting for the disk never stops sound: takes `{ id, sql, parameters, begin? }`, answers
 * `{ id, rows, changes }` or `{ id, error: { code, message } }`, in order. Plain JavaScript, so that one file serves
 * source and build. A database that cannot be opened is tried again with the next request.
 */
import { parentPort, workerData } from 'node:worker_threads';
import Database from 'libsql';

const { path, busyMaxMs, statementsMax } = workerData;
/** In order of use, the longest unused first. */
const statements = new Map();
let database;

function open() {
  const opened = new Database(path, { timeout: busyMaxMs });
  try {
    // With a write-ahead log, readers do not wait for a writer, and a commit is one write and one fsync of the log. FULL is
    // that fsync: NORMAL leaves it out, and a power failure then takes back what was reported as stored.
    opened.exec('PRAGMA journal_mode = WAL');
    opened.exec('PRAGMA synchronous = FULL');
    // What is deleted is overwritten, not only unlinked.
    opened.exec('PRAGMA secure_delete = ON');
  } catch (error) {
    opened.close();
    throw error;
  }
  return opened;
}

function prepared(sql) {
  const known = statements.get(sql);
  if (known !== undefined) {
    statements.delete(sql);
    statements.set(sql, known);
    return known;
  }
  const statement = database.prepare(sql);
  statements.set(sql, statement);
  if (statements.size > statementsMax) statements.delete(statements.keys().next().value);
  return statement;
}

function answer({ sql, parameters, begin }) {
  if (sql === 'close') {
    statements.clear();
    database?.close();
    database = undefined;
    return {};
  }
  database ??= open();
  if (sql === 'rollback') {
    // A full disk has rolled back already.
    if (database.inTransaction) database.exec('ROLLBACK');
    return {};
  }
  if (begin !== undefined) database.exec(begin);
  const statement = prepared(sql);
  if (statement.reader) return { rows: statement.all(parameters) };
  return { changes: statement.run(parameters).changes };
}

parentPort.on('message', (request) => {
  try {
    parentPort.postMessage({ id: request.id, ...answer(request) }, []);
  } catch (error) {
    const code = typeof error.code === 'string' ? error.code : '';
    parentPort.postMessage({ id: request.id, error: { code, message: String(error.message) } }, []);
  }
});
