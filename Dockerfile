FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm pkg delete devDependencies

FROM node:24-slim
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/dist ./dist
USER node
ENV HOST=0.0.0.0
EXPOSE 3000
HEALTHCHECK CMD ["node", "dist/server.js", "--ready"]
CMD ["node", "--permission", "--allow-fs-read=/app/*", "--allow-fs-read=/run/secrets/*", "--allow-fs-read=/data/*", "--allow-fs-write=/data/*", "--max-semi-space-size=16", "dist/server.js"]
