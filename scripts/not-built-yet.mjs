/** Stands behind commands that are named but not built yet, so that none of them seems to succeed. */
process.stderr.write(`${process.argv[2]} is not built yet in this version.\n`);
process.exit(1);
