/// <reference types="vitest/config" />
import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

// The address of a running binary for the dev server.
const server = process.env.MUSTER_URL ?? 'http://127.0.0.1:8080'

// Which file a module goes to. Names carry no hash: the server answers them with an ETag,
// and a change of one screen changes one file of dist.
function fileOf(id: string): string | undefined {
  if (/node_modules\/(@codemirror|@lezer|@marijn|style-mod|w3c-keyname|crelt)\//.test(id)) return 'editor'
  if (/node_modules\/uplot\//.test(id)) return 'plot'
  if (/node_modules\/(@xyflow|@dagrejs|d3-|zustand|classcat)/.test(id)) return 'canvas'
  if (/node_modules\/(@mantine\/dates|dayjs)\//.test(id)) return 'dates'
  if (id.includes('node_modules') || id.startsWith('\0')) return 'vendor'
  const screen = /\/src\/screens\/([a-z]+)\/(?!route\.tsx?$)/.exec(id)
  if (screen) return 'screen-' + screen[1]
  if (/\/src\/shared\/(Plot|Code)View\.tsx$/.test(id)) return undefined
  return /\/src\//.test(id) ? 'main' : undefined
}

export default defineConfig({
  base: '/console/',
  plugins: [react()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: {
      output: {
        entryFileNames: 'assets/[name].js',
        chunkFileNames: 'assets/[name].js',
        assetFileNames: 'assets/[name][extname]',
        codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: (id) => fileOf(id) ?? null }] },
      },
    },
  },
  server: {
    proxy: { '/console/api': { target: server, changeOrigin: false }, '/openapi.json': server, '/reference': server, '/readyz': server },
  },
  test: { environment: 'node', include: ['src/**/*.test.ts', 'inapp/*.test.ts'] },
})
