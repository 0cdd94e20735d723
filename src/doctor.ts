/**
 * `npm run doctor`: checks what a real number needs and says what to mend. Takes the environment as the server does;
 * what is checked is in `doctor-checks.ts`. Exit 0 when all is well, 1 when something is to mend, 78 on a bad variable.
 */
import { config as loadDotenv } from 'dotenv';
import { systemClock } from './clock.js';
import { readConfig } from './config.js';
import { diagnose } from './doctor-checks.js';
import { type Finding, isAllWell, renderFinding, renderVerdict } from './doctor-finding.js';
import { complaint, ConfigError } from './errors.js';

const EXIT_CONFIG = 78;

async function main(): Promise<number> {
  loadDotenv({ quiet: true });
  const config = readConfig(process.env);
  const findings: Finding[] = [];
  for await (const finding of diagnose(config, { clock: systemClock })) {
    findings.push(finding);
    process.stdout.write(renderFinding(finding));
  }
  process.stdout.write(renderVerdict(findings));
  return isAllWell(findings) ? 0 : 1;
}

// Waiting for the end of the output: a pipe may still hold some of it.
main().then(
  (code) => process.stdout.write('', () => process.exit(code)),
  (error: unknown) => {
    process.stderr.write(complaint('doctor', error));
    process.exit(error instanceof ConfigError ? EXIT_CONFIG : 1);
  },
);
