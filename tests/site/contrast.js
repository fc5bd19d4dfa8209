// Every text that is seen whose contrast against what is behind it is too low: [ratio, needed, text, where].
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (css) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (front, back) => back.map((value, i) => front[3] * front[i] + (1 - front[3]) * value);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    if (!element) return [255, 255, 255];
    return over(colour(getComputedStyle(element).backgroundColor), behind(element.parentElement));
  };
  const low = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2 || box.right < 0 || box.bottom < 0) continue;
    seen += 1;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    let front = colour(style.color);
    for (let one = element; one; one = one.parentElement) front[3] *= Number(getComputedStyle(one).opacity);
    const back = behind(element);
    const [darker, lighter] = [luminance(over(front, back)), luminance(back)].sort((a, b) => a - b);
    const ratio = (lighter + 0.05) / (darker + 0.05);
    if (ratio < needed) low.push([Math.round(ratio * 100) / 100, needed, text.slice(0, 40), element.tagName + "." + element.className]);
  }
  return [seen, low];
}
