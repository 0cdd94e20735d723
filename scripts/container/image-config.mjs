/**
 * Reads `buildah inspect --type image` on standard input and prints one part of how the image wants to be run, a value a
 * line: `user`, `env`, `cmd`, `healthcheck`, `volumes`, `workdir` or `stopsignal`. Fails where a command is not in exec form: a
 * shell in front of the server would take its signals.
 */
import { readFileSync } from 'node:fs';

const { Docker } = JSON.parse(readFileSync(0, 'utf8'));
const { config } = Docker;

function execForm(command, name) {
  if (!Array.isArray(command) || command.length === 0) throw new Error(`the image has no ${name}`);
  if (command[0] === '/bin/sh') throw new Error(`the image's ${name} is in shell form`);
  return command;
}

/** Docker's form is `["CMD", word, …]` for the exec form and `["CMD-SHELL", line]` for the other. */
function healthcheck() {
  const test = config.Healthcheck?.Test ?? [];
  if (test[0] !== 'CMD') throw new Error('the image has no HEALTHCHECK in exec form');
  return test.slice(1);
}

const PARTS = {
  user: () => [config.User],
  env: () => config.Env,
  cmd: () => execForm(config.Cmd, 'CMD'),
  healthcheck,
  volumes: () => Object.keys(config.Volumes ?? {}),
  workdir: () => [config.WorkingDir],
  stopsignal: () => [config.StopSignal],
};

const part = PARTS[process.argv[2]];
if (part === undefined) throw new Error(`image-config.mjs takes one of ${Object.keys(PARTS).join(', ')}`);
process.stdout.write(`${part().join('\n')}\n`);
