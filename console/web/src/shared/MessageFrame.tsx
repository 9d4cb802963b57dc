import { Box, SegmentedControl, Text } from '@mantine/core'
import { useState } from 'react'

/**
 * HTML of a message in a frame without scripts, forms, links that lead away, or an origin. The page's policy
 * holds in it too: images of other hosts are not loaded.
 */
export function MessageFrame({ html, title, height = 460 }: { html: string; title: string; height?: number }) {
  const [width, setWidth] = useState<'wide' | 'phone'>('wide')
  const images = /<img[^>]+src\s*=\s*["']?https?:/i.test(html)
  return (
    <Box>
      <SegmentedControl size="xs" mb={6} value={width} onChange={(v) => setWidth(v as 'wide' | 'phone')} data={[{ value: 'wide', label: 'Wide' }, { value: 'phone', label: 'Phone' }]} aria-label="Width of the preview" />
      <Box bd="1px solid var(--mantine-color-default-border)" bg="white" mx="auto" style={{ maxWidth: width === 'phone' ? 375 : undefined, borderRadius: 'var(--mantine-radius-sm)', overflow: 'hidden' }}>
        {/* A frame for each text: Chromium may leave one blank whose text is replaced while it loads. */}
        <iframe key={html} title={title} sandbox="" referrerPolicy="no-referrer" srcDoc={frame(html)} style={{ display: 'block', width: '100%', height, border: 0, colorScheme: 'light' }} />
      </Box>
      {images && (
        <Text size="xs" c="dimmed" mt={4}>
          Images of other hosts are not loaded here. A test shows them.
        </Text>
      )}
    </Box>
  )
}

/** A message may be a fragment; then it gets the margin that mail programs give it. */
const frame = (html: string) => (/<html[\s>]/i.test(html) ? html : `<!doctype html><meta charset="utf-8"><body style="margin:16px;font-family:system-ui,sans-serif;color:#111">${html}</body>`)
