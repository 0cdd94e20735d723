# The server as an image. It listens on all addresses of its container, so it starts only with what makes that safe:
# PUBLIC_URL, TWILIO_AUTH_TOKEN, CONSOLE_TOKEN and a Gemini key (or MODEL=rehearsal); see docs/configuration.md.
# A stop drains running calls for up to five minutes: give it that long (docker stop --time 330, or its like).

FROM node:20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY src ./src
RUN npm run build

FROM node:20-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:20-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    DATA_DIR=/data
COPY package.json LICENSE ./
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY agents ./agents
RUN install -d -m 0700 -o 10001 -g 10001 /data
VOLUME ["/data"]
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# Alive, not ready: what fails this may be restarted, and a full or draining server still carries calls. Route calls by
# /readyz.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]
