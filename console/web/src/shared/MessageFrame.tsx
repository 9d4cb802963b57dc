import { Box, SegmentedControl, Text } from '@mantine/core'
import { useState } from 'react'
import { frame, hasImages } from './frame'

/** HTML of a message in a frame without scripts, forms, links that lead away, pictures, or an origin. */
export function MessageFrame({ html, title, height = 460 }: { html: string; title: string; height?: number }) {
  const [width, setWidth] = useState<'wide' | 'phone'>('wide')
  const images = hasImages(html)
  return (
    <Box>
      <SegmentedControl size="xs" mb={6} value={width} onChange={(v) => setWidth(v as 'wide' | 'phone')} data={[{ value: 'wide', label: 'Wide' }, { value: 'phone', label: 'Phone' }]} aria-label="Width of the preview" />
      <Box bd="1px solid var(--mantine-color-default-border)" bg="white" mx="auto" style={{ maxWidth: width === 'phone' ? 375 : undefined, borderRadius: 'var(--mantine-radius-sm)', overflow: 'hidden' }}>
        {/* A frame for each text: Chromium may leave one blank whose text is replaced while it loads. */}
        <iframe key={html} title={title} sandbox="" referrerPolicy="no-referrer" srcDoc={frame(html)} style={{ display: 'block', width: '100%', height, border: 0, colorScheme: 'light' }} />
      </Box>
      {images && (
        <Text size="xs" c="dimmed" mt={4}>
          Images are not loaded here, so that looking at a message does not count as an open.
        </Text>
      )}
    </Box>
  )
}
