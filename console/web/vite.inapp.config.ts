import { defineConfig } from 'vite'

// The script that shows in-app messages on pages of customers, beside the console's files.
export default defineConfig({
  publicDir: false,
  build: {
    outDir: '../dist',
    emptyOutDir: false,
    target: 'es2022',
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
    lib: { entry: 'inapp/muster-inapp.ts', formats: ['iife'], name: 'muster', fileName: () => 'muster-inapp.js' },
  },
})
