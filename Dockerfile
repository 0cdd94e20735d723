# The server as an image, for Docker and its like; docs/container.md says how to run it and what it needs. It listens on
# all addresses of its container, so it starts only with what makes that safe: PUBLIC_URL, TWILIO_AUTH_TOKEN,
# CONSOLE_TOKEN and a Gemini key (or MODEL=rehearsal). Only DATA_DIR and /tmp need to be writable. A stop drains running
# calls for up to five minutes: give it that long (docker stop --time 330, or its like).
#
# No package's install script runs, whatever npm the base brings: an older one does not read package.json's
# `allowScripts`, which allows none.

FROM node:20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.mjs ./scripts/
COPY src ./src
RUN npm run build && find dist -type f -name '*.map' -delete

FROM node:20-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Types and source maps are a third of the bytes, and nothing reads them at run time.
RUN npm ci --omit=dev --ignore-scripts \
  && find node_modules -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -delete \
  && rm -rf node_modules/@types node_modules/.package-lock.json

FROM node:20-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    DATA_DIR=/data
RUN install -d -m 0700 -o 10001 -g 10001 /data
COPY --from=packages /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY scripts/container/healthcheck.mjs ./scripts/container/
COPY agents ./agents
COPY --from=build /app/dist ./dist
VOLUME ["/data"]
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# Alive, not ready: what fails this may be restarted, and a full or draining server still carries calls. Route calls by
# /readyz.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "scripts/container/healthcheck.mjs"]
CMD ["node", "dist/main.js"]
